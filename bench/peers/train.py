"""One training job in PyTorch.

    python train.py --job job.json --variant seed|tuned|tuned-fp32|compiled

seed        the loop of seed 001: eager float32, padded batches, log-probabilities at every target
            position, cross-entropy that ignores the padding, Adam as it comes
tuned       what someone who knows PyTorch changes first: the loss on real target rows only, fused
            Adam, bfloat16 autocast
tuned-fp32  the same without autocast, for processors where bfloat16 is slow
compiled    tuned, through torch.compile
"""

import argparse
import json
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from torch import nn

from shared import answer, load_file, read_job, reference


variants = ["seed", "tuned", "tuned-fp32", "compiled"]


def build_model(job):
    size = job["model"]
    model = reference.make_model(
        size["vocabSize"], size["N"], size["dModel"], size["dFf"], size["h"], job["dropout"]
    )
    model.load_state_dict(load_file(job["weights"]), strict=True)
    if job["dropout"] == 0:
        reference.without_dropout(model)
    return model.train()


def padded(sequences):
    """Lists of ids -> [B, longest]"""
    return nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in sequences], batch_first=True)


@dataclass
class TrainingBatch:
    padded: reference.Batch
    rows: torch.Tensor
    """Where in the flattened target positions tokens stand."""
    targets: torch.Tensor
    """Those tokens."""

    @staticmethod
    def of(pairs):
        batch = reference.Batch.of(
            padded([pair["src"] for pair in pairs]), padded([pair["tgt"] for pair in pairs])
        )
        targets = batch.tgt_y.flatten()
        rows = targets.ne(reference.PAD).nonzero().flatten()
        return TrainingBatch(batch, rows, targets[rows])

    def each(self, change):
        """The same batch with `change` done to every tensor."""
        tensors = {
            field.name: change(getattr(self.padded, field.name))
            for field in fields(self.padded)
            if field.name != "ntokens"
        }
        batch = replace(self.padded, **tensors)
        return TrainingBatch(batch, change(self.rows), change(self.targets))


def read_batches(job):
    batches = json.loads(Path(job["batches"]).read_text())["batches"][: job["steps"]]
    return [TrainingBatch.of(pairs) for pairs in batches]


class Training:
    """A model with its optimizer, on the job's device."""

    def __init__(self, job, variant):
        self.device = torch.device(job.get("device", "cpu"))
        self.autocast = variant in ("tuned", "compiled")
        self.seed = variant == "seed"
        self.model = build_model(job).to(self.device)
        self.body, self.row_loss = self.model, row_loss
        if variant == "compiled":
            # Every batch has different lengths, and a graph for each would take minutes.
            self.body = torch.compile(self.model, dynamic=True)
            self.row_loss = torch.compile(row_loss, dynamic=True)
        fused = {} if self.seed else {"fused": True}
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=job["learningRate"], **fused)

    def loss(self, batch):
        b = batch.padded
        if self.seed:
            return reference.loss_compute(self.model, b)
        out = self.body(b.src, b.tgt, b.src_mask, b.tgt_mask)
        loss = self.row_loss(self.model.generator.proj, out, batch.rows, batch.targets)
        return loss / b.ntokens

    def step(self, batch):
        """Takes one step; the loss that it was taken with."""
        batch = batch.each(lambda tensor: tensor.to(self.device, non_blocking=True))
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            loss = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def row_loss(projection, out, rows, targets):
    logits = projection(out.flatten(0, 1)[rows]).float()
    return nn.functional.cross_entropy(logits, targets, reduction="sum")


def timed_steps(training, batches):
    """Seconds, tokens and losses of a step on each of the batches."""
    seconds, losses = [], []
    for batch in batches:
        start = time.perf_counter()
        losses.append(training.step(batch))
        seconds.append(time.perf_counter() - start)
    tokens = [batch.padded.ntokens for batch in batches]
    return dict(seconds=seconds, tokens=tokens, losses=losses)


def train(job, variant):
    answer(**timed_steps(Training(job, variant), read_batches(job)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--variant", required=True, choices=variants)
    arguments = parser.parse_args()
    train(read_job(arguments.job), arguments.variant)
