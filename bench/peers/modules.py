"""The seed's classes one by one, forward and backward, as they are or through torch.compile.

    python modules.py --job job.json --variant eager|compiled

Inputs, parameters, and the outputs and gradients to compare with come from the job's file.
"""

import argparse
import time

import torch
from torch import nn

from shared import answer, load_file, read_job, reference


class SublayerOfNothing(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.connection = reference.SublayerConnection(size, dropout)

    def forward(self, x):
        return self.connection(x, lambda y: y)


class GeneratorLoss(nn.Module):
    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.generator = reference.Generator(d_model, vocab_size)
        self.criterion = nn.CrossEntropyLoss(ignore_index=reference.PAD, reduction="sum")

    def forward(self, x, targets):
        return self.criterion(self.generator(x).flatten(0, 1), targets.flatten())


def make_cases(job, given):
    """name -> module, where its state is, its arguments"""
    d, dropout, x = job["dModel"], job["dropout"], given["x"]
    embedding = nn.Sequential(
        reference.TransformerEmbedding(d, job["vocabSize"]),
        reference.PositionalEncoding(d, dropout),
    )
    attention = reference.MultiHeadedAttention(job["h"], d, dropout)
    feed_forward = reference.PositionwiseFeedForward(d, job["dFf"], dropout)
    return {
        "layerNorm": (reference.LayerNorm(d), "", (x,)),
        "attention": (attention, "", (x, x, x, given["mask"])),
        "feedForward": (feed_forward, "", (x,)),
        "sublayer": (SublayerOfNothing(d, dropout), "connection.", (x,)),
        "embedding": (embedding, "", (given["ids"],)),
        "generatorLoss": (GeneratorLoss(d, job["vocabSize"]), "generator.", (x, given["ids"])),
    }


def forward_and_backward(module, call, arguments, given):
    module.zero_grad()
    given["x"].grad = None
    output = call(*arguments)
    output.backward(None if output.ndim == 0 else given["upstream"])
    return output


def largest_difference(name, module, prefix, call, arguments, given):
    module.eval()
    output = forward_and_backward(module, call, arguments, given)
    found = {"output": output.detach()}
    if given["x"].grad is not None:
        found["gradient/x"] = given["x"].grad
    for key, parameter in module.named_parameters():
        found["gradient/" + key.removeprefix(prefix)] = parameter.grad
    scale = max(g.abs().max() for key, g in found.items() if key.startswith("gradient/"))
    differences = []
    for key, value in found.items():
        expected = given[f"{name}/{key}"]
        # The gradient of a key bias is zero except for rounding, so all gradients share one scale.
        largest = expected.abs().max() if key == "output" else scale
        differences.append(((value - expected).abs().max() / largest).item())
    return max(differences)


def measure(job, variant):
    given = load_file(job["file"])
    given["x"].requires_grad_()
    seconds, difference, errors = {}, {}, {}
    for name, (module, prefix, arguments) in make_cases(job, given).items():
        start = f"{name}/state/"
        state = {prefix + key[len(start) :]: v for key, v in given.items() if key.startswith(start)}
        module.load_state_dict(state, strict=True)
        call = torch.compile(module) if variant == "compiled" else module
        try:
            difference[name] = largest_difference(name, module, prefix, call, arguments, given)
            module.train()
            times = []
            for _ in range(job["warmup"] + job["iterations"]):
                begin = time.perf_counter()
                forward_and_backward(module, call, arguments, given)
                times.append(time.perf_counter() - begin)
            seconds[name] = times[job["warmup"] :]
        except Exception as error:
            if variant != "compiled":
                raise
            # For example without a C++ compiler; the other participants can still run.
            errors[name] = f"torch.compile failed: {str(error).strip().splitlines()[0]}"
    answer(seconds=seconds, difference=difference, errors=errors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--variant", required=True, choices=["eager", "compiled"])
    arguments = parser.parse_args()
    measure(read_job(arguments.job), arguments.variant)
