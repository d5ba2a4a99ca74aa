"""Times of the native ops, forward and backward, and of the ATen ops that they replace.

    python op_times.py --libraries folder --device cuda|cpu

Prints one line of JSON. On a GPU the sizes are those of a batch of 25,000 tokens, timed by the GPU; on
the CPU they are tiny, for rehearsals. Ours and ATen run in turn; results are medians.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "ops"))

from library import exact, load  # noqa: E402

ROUNDS, CALLS, WARMUP = 5, 4, 3


class Sizes:
    def __init__(self, device):
        gpu = device == "cuda"
        self.rows, self.sequences = (22_500, 1500) if gpu else (60, 4)
        self.width, self.hidden, self.heads = (512, 2048, 8) if gpu else (32, 64, 2)
        self.classes, self.table, self.used = (32_000, 151_643, 700) if gpu else (100, 200, 20)


def subjects(ops, sizes, dtype, device):
    """name, input in words, inputs, ours, ATen's"""
    made = dict(dtype=dtype, device=device)

    def rand(*shape):
        return torch.randn(shape, **made).requires_grad_()

    n, d, f, v = sizes.rows, sizes.width, sizes.hidden, sizes.classes
    x, scale, shift = rand(n, d), rand(d), rand(d)
    rows = f"[{n}, {d}]"

    def pair(name):
        return getattr(ops, name), getattr(ops, name + "_reference")

    outside = dict(sample_std=True, eps_outside=True)
    for words, options in (("", {}), (", sample std, eps outside", outside)):
        calls = [lambda *t, op=op, o=options: op(*t, 1e-6, **o) for op in pair("layer_norm")]
        yield "layer_norm", rows + words, [x, scale, shift], *calls
    calls = [lambda *t, op=op: op(*t, 1e-6) for op in pair("rms_norm")]
    yield "rms_norm", rows, [x, scale], *calls
    calls = [lambda *t, op=op: torch.stack(op(*t, 0.1)) for op in pair("add_norm")]
    yield "add_norm (and a stack of its results)", rows, [x, rand(n, d), scale, shift], *calls
    yield "dropout", rows, [x], *[lambda x, op=op: op(x, 0.1) for op in pair("dropout")]
    yield (
        "dropout with residual",
        rows,
        [x, rand(n, d)],
        *[lambda x, r, op=op: op(x, 0.1, residual=r) for op in pair("dropout")],
    )
    w1, b1, w2, b2 = rand(f, d), rand(f), rand(d, f), rand(d)
    yield (
        "feed_forward",
        f"{rows} to {f}",
        [x, w1, b1, w2, b2],
        *[lambda *t, op=op: op(*t, 0.1) for op in pair("feed_forward")],
    )
    yield "linear", rows, [x, rand(d, d), rand(d)], *pair("linear")
    target = torch.randint(1, v, (n,), device=device)
    yield (
        "linear_cross_entropy",
        f"{rows} to {v}",
        [x, rand(v, d), rand(v)],
        *[
            lambda *t, op=op: op(*t, target, 0, 0.0, 1 / n)[0]
            for op in pair("linear_cross_entropy")
        ],
    )
    length = n // sizes.sequences
    offsets = torch.arange(0, n + 1, length, dtype=torch.int32, device=device)

    def packed(q, k, v):
        longest = dict(longest_query=length, longest_key=length)
        return ops.packed_attention(q, k, v, offsets, offsets, sizes.heads, True, 0.1, **longest)

    def padded(*qkv):
        split = [t.view(sizes.sequences, length, sizes.heads, -1).transpose(1, 2) for t in qkv]
        output = torch.nn.functional.scaled_dot_product_attention(
            *split, dropout_p=0.1, is_causal=True
        )
        return output.transpose(1, 2).reshape(n, d)

    # All sequences have the same length, so that padding costs the other side nothing.
    yield (
        "packed_attention, causal",
        f"{sizes.sequences} of {length}, {sizes.heads} heads",
        [x, rand(n, d), rand(n, d)],
        packed,
        padded,
    )
    shape = (sizes.sequences, sizes.heads, length, d // sizes.heads)
    mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()
    yield (
        "attention, masked",
        str(list(shape)),
        [rand(*shape), rand(*shape), rand(*shape)],
        lambda q, k, v: ops.attention(q, k, v, mask, 0.1)[0],
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, 0.1),
    )


def once(function, inputs):
    """One forward and backward pass."""
    for tensor in inputs:
        tensor.grad = None
    output = function(*inputs)
    output.backward(torch.ones_like(output))


def seconds(call, device):
    """Seconds per call, timed by the device over several calls in a row."""
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        return (time.perf_counter() - start) / CALLS
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(CALLS):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / CALLS


def medians(calls, device):
    """Median seconds of each of the calls, which run in turn."""
    for call in calls:
        for _ in range(WARMUP):
            call()
    turns = [[seconds(call, device) for call in calls] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*turns)]


def adam(ops, sizes, device):
    """Row-sparse Adam, compared with a dense gradient and PyTorch's fused Adam."""
    made = dict(dtype=torch.float32, device=device)
    weights = [torch.randn(sizes.table, sizes.width, **made) for _ in range(2)]
    means = [torch.zeros(sizes.table, sizes.width, **made) for _ in range(2)]
    touched = torch.zeros(sizes.table, dtype=torch.bool, device=device)
    ids = torch.randperm(sizes.table, device=device)[: sizes.used]
    values = torch.randn(sizes.used, sizes.width, **made)
    sparse = torch.sparse_coo_tensor(ids[None], values, weights[0].shape, check_invariants=False)
    dense = weights[1].requires_grad_()
    optimizer = torch.optim.Adam([dense], lr=1e-3, fused=True)

    step = torch.tensor(1.0, device=device)

    @torch.no_grad()
    def ours():
        settings = dict(lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8)
        ops.adam_rows_(weights[0], sparse, *means, touched, step, **settings)

    def aten():
        dense.grad = torch.zeros_like(dense).index_add_(0, ids, values)
        optimizer.step()

    return ours, aten


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--device", required=True, choices=["cuda", "cpu"])
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    device = arguments.device
    ops, sizes = load(arguments.libraries, device), Sizes(device)
    exact()
    times = []

    def measure(op, dtype, words, make_calls):
        name = str(dtype).removeprefix("torch.")
        record = dict(op=op, dtype=name, input=words, ours=None, aten=None)
        try:
            record["ours"], record["aten"] = medians(make_calls(), device)
        except Exception as fault:  # The next op may still work.
            record["fault"] = f"{type(fault).__name__}: {fault}"[:300]
        times.append(record)

    for dtype in (torch.float32, torch.bfloat16):
        for op, words, inputs, *functions in subjects(ops, sizes, dtype, device):
            calls = [lambda f=f: once(f, inputs) for f in functions]
            measure(op, dtype, words, lambda: calls)
    words = f"{sizes.used} rows of [{sizes.table}, {sizes.width}]"
    measure("adam_rows_", torch.float32, words, lambda: adam(ops, sizes, device))
    print(json.dumps(dict(times=times)))


if __name__ == "__main__":
    main()
