"""Trains a translator in PyTorch as suite `translator` describes it, and keeps the best weights.

    python translator.py --job job.json --variant tuned|tuned-fp32

tuned       bfloat16 autocast, for processors whose bfloat16 is fast
tuned-fp32  float32

The model is that of tuned.py: PyTorch's fused attention and norm, a faster dropout, the loss on real
target rows only with PyTorch's label smoothing, fused Adam.
"""

import argparse
import json
import struct
import time
from pathlib import Path

import torch
from torch import nn

from shared import answer, read_job
from train import TrainingBatch, build_model
from tuned import tune

variants = ["tuned", "tuned-fp32"]


def noam(step, model, warmup, factor):
    return factor * model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def row_loss(projection, out, batch, smoothing):
    logits = projection(out.flatten(0, 1)[batch.rows]).float()
    return nn.functional.cross_entropy(
        logits, batch.targets, reduction="sum", label_smoothing=smoothing
    )


def save(path, state):
    """A safetensors file; the peers need no package but PyTorch for it."""
    header, offset, parts = {}, 0, []
    for name, tensor in state.items():
        data = tensor.detach().contiguous().numpy().tobytes()
        dtype = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        header[name] = dict(
            dtype=dtype, shape=list(tensor.shape), data_offsets=[offset, offset + len(data)]
        )
        offset += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def train(job, variant):
    given = json.loads(Path(job["pairs"]).read_text())
    model = tune(build_model(job))
    optimizer = torch.optim.Adam(
        model.parameters(), betas=tuple(job["betas"]), eps=job["eps"], fused=True
    )
    autocast = variant == "tuned"

    def loss_of(batch, smoothing):
        b = batch.padded
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            out = model(b.src, b.tgt, b.src_mask, b.tgt_mask)
            return row_loss(model.generator.proj, out, batch, smoothing)

    def validation_loss(batches):
        model.eval()
        with torch.no_grad():
            total = sum(loss_of(batch, 0.0).item() for batch in batches)
        model.train()
        return total / sum(batch.padded.ntokens for batch in batches)

    held_out = [TrainingBatch.of(batch) for batch in given["validation"]]
    start, step, best, epochs = time.perf_counter(), 0, float("inf"), []
    for epoch in given["epochs"]:
        for rows in epoch:
            batch = TrainingBatch.of([given["training"][row] for row in rows])
            step += 1
            rate = noam(step, job["model"]["dModel"], job["warmup"], job["factor"])
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = loss_of(batch, job["labelSmoothing"]) / batch.padded.ntokens
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        found = validation_loss(held_out)
        if found < best:
            best = found
            save(job["out"], model.state_dict())
        epochs.append(dict(seconds=time.perf_counter() - start, validationLoss=found))
    answer(epochs=epochs, steps=step)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--variant", required=True, choices=variants)
    arguments = parser.parse_args()
    train(read_job(arguments.job), arguments.variant)
