"""One training job in PyTorch.

    python train.py --job job.json --variant seed|tuned|tuned-fp32

seed        the loop of seed 001: eager float32, padded batches, log-probabilities at every target
            position, cross-entropy that ignores the padding, Adam as it comes
tuned       what someone who knows PyTorch changes first: the loss on real target rows only, fused
            Adam, bfloat16 autocast
tuned-fp32  the same without autocast, for processors where bfloat16 is slow
"""

import argparse
import json
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from shared import answer, read_job, reference


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


def read_batches(job):
    batches = json.loads(Path(job["batches"]).read_text())["batches"][: job["steps"]]
    return [
        reference.Batch.of(
            padded([pair["src"] for pair in pairs]), padded([pair["tgt"] for pair in pairs])
        )
        for pairs in batches
    ]


def seed_loss(model, batch):
    return reference.loss_compute(model, batch)


def row_loss(model, batch):
    out = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
    real = batch.tgt_y != reference.PAD
    logits = model.generator.proj(out[real]).float()
    loss = nn.functional.cross_entropy(logits, batch.tgt_y[real], reduction="sum")
    return loss / batch.ntokens


def train(job, variant):
    model = build_model(job)
    batches = read_batches(job)
    tuned = variant != "seed"
    loss_of = row_loss if tuned else seed_loss
    fused = {"fused": True} if tuned else {}
    optimizer = torch.optim.Adam(model.parameters(), lr=job["learningRate"], **fused)
    seconds, losses = [], []
    for batch in batches:
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=variant == "tuned"):
            loss = loss_of(model, batch)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    answer(seconds=seconds, tokens=[batch.ntokens for batch in batches], losses=losses)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--variant", required=True, choices=["seed", "tuned", "tuned-fp32"])
    arguments = parser.parse_args()
    train(read_job(arguments.job), arguments.variant)
