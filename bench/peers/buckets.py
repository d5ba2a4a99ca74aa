"""One training job on length-bucketed token batches, as someone who knows PyTorch writes it.

    python buckets.py --job job.json --variant tuned-fp32|compiled-fp32

tuned-fp32     the model of tuned.py, the loss on real target rows only, fused Adam, float32
compiled-fp32  the same, with PyTorch's own dropout, through torch.compile with dynamic shapes
"""

import argparse
import json
import time
from pathlib import Path

import torch

from shared import answer, read_job
from train import TrainingBatch, build_model, row_loss
from tuned import tune

variants = ["tuned-fp32", "compiled-fp32"]


def longer_side(pair):
    return max(len(pair["src"]), len(pair["tgt"]) - 1)


def cut_buckets(pairs, tokens):
    """Pairs, sorted by length, in batches of at most `tokens` tokens: longest side x pairs, as fairseq's
    --max-tokens counts them."""
    batches, batch = [], []
    for pair in sorted(pairs, key=lambda p: (longer_side(p), len(p["tgt"]), len(p["src"]))):
        if batch and (len(batch) + 1) * longer_side(pair) > tokens:
            batches.append(batch)
            batch = []
        batch.append(pair)
    if batch:
        batches.append(batch)
    return [TrainingBatch.of(batch) for batch in batches]


def inputs(batch):
    b = batch.padded
    return b.src, b.tgt, b.src_mask, b.tgt_mask


class Training:
    def __init__(self, job, variant):
        self.model = tune(build_model(job), own_dropout=variant != "compiled-fp32")
        self.body, self.row_loss = self.model, row_loss
        if variant == "compiled-fp32":
            # Every batch has different lengths, and a graph for each would take minutes.
            self.body = torch.compile(self.model, dynamic=True)
            self.row_loss = torch.compile(row_loss, dynamic=True)
        parameters = self.model.parameters()
        self.optimizer = torch.optim.Adam(parameters, lr=job["learningRate"], fused=True)

    def step(self, batch):
        """Takes one step; the loss that it was taken with."""
        out = self.body(*inputs(batch))
        loss = self.row_loss(self.model.generator.proj, out, batch.rows, batch.targets)
        loss = loss / batch.padded.ntokens
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validation_loss(self, batches):
        """Mean over all target tokens, and their number."""
        self.model.eval()
        total, tokens = 0.0, 0
        for batch in batches:
            # Eager: a graph for these few batches would take longer than they do.
            out = self.model(*inputs(batch))
            total += row_loss(self.model.generator.proj, out, batch.rows, batch.targets).item()
            tokens += batch.padded.ntokens
        self.model.train()
        return total / tokens, tokens


def train(job, variant):
    given = json.loads(Path(job["pairs"]).read_text())
    training = Training(job, variant)
    batches = cut_buckets(given["training"], job["tokens"])
    held_out = cut_buckets(given["validation"], job["tokens"]) if job["validate"] else []
    seconds, tokens, losses, epochs = [], [], [], []
    for order in given["orders"][: job["epochs"]]:
        first = len(losses)
        for index in order[: job["steps"]]:
            start = time.perf_counter()
            losses.append(training.step(batches[index]))
            seconds.append(time.perf_counter() - start)
            tokens.append(batches[index].padded.ntokens)
        weighted = sum(loss * count for loss, count in zip(losses[first:], tokens[first:]))
        loss, count = training.validation_loss(held_out) if held_out else (None, None)
        epochs.append(
            dict(
                seconds=sum(seconds[first:]),
                trainingLoss=weighted / sum(tokens[first:]),
                validationLoss=loss,
                validationTokens=count,
            )
        )
    answer(seconds=seconds, tokens=tokens, losses=losses, epochs=epochs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--variant", required=True, choices=variants)
    arguments = parser.parse_args()
    train(read_job(arguments.job), arguments.variant)
