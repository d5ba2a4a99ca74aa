"""Checks of torchformer::packed_attention that the table of cases does not make: every length, every
width of a head, and what the results must not depend on."""
import itertools

import torch

from support import TOLERANCE, check, close, compare, generator, ops, rand


def offsets_of(lengths):
    return torch.tensor([0, *itertools.accumulate(lengths)])


def qkv(queries, keys, width, dtype=torch.float32):
    return [rand(sum(n), width, dtype=dtype, seed=i + 1) for i, n in enumerate((queries, keys, keys))]


def attend(function, queries, keys, heads, causal=False, p=0.0):
    offsets = offsets_of(queries), offsets_of(keys)
    return lambda *t: function(*t, *offsets, heads, causal, p, generator=generator())


def compare_with_reference(queries, keys, heads, width, dtype, causal, p):
    both = [attend(f, queries, keys, heads, causal, p) for f in (ops.packed_attention, ops.packed_attention_reference)]
    compare(*both, qkv(queries, keys, heads * width, dtype), TOLERANCE[dtype])


def results(queries, keys, heads, inputs, causal, p):
    """Output and gradients."""
    inputs = [t.detach().requires_grad_() for t in inputs]
    output = attend(ops.packed_attention, queries, keys, heads, causal, p)(*inputs)
    upstream = torch.arange(output.numel()).view(output.shape).remainder(17).to(output.dtype)
    return [output.detach(), *torch.autograd.grad(output, inputs, upstream)]


@check
def packed_attention_of_every_length():
    lengths = list(range(41))
    for dtype, causal, p in itertools.product((torch.float32, torch.float64), (False, True), (0.0, 0.3, 1.0)):
        compare_with_reference(lengths, lengths, 2, 32, dtype, causal, p)
    # Each number of queries beside several numbers of keys, also none.
    for shift in (1, 7, 23):
        keys = lengths[shift:] + lengths[:shift]
        for p in (0.0, 0.3):
            compare_with_reference(lengths, keys, 1, 16, torch.float32, False, p)


@check
def packed_attention_of_every_width():
    queries, keys = [3, 0, 20, 17], [5, 2, 1, 33]
    for width in range(1, 81):
        for p in (0.0, 0.3):
            compare_with_reference(queries, keys, 2, width, torch.float32, False, p)
        compare_with_reference(queries, queries, 1, width, torch.float32, True, 0.3)
        compare_with_reference(queries, keys, 1, width, torch.float64, False, 0.3)
    for width in (96, 100, 128, 200):
        compare_with_reference(queries, queries, 1, width, torch.float32, True, 0.3)


@check
def packed_attention_of_long_sequences():
    for lengths in ([63, 64, 65], [127, 128, 129], [300]):
        for causal, p in itertools.product((False, True), (0.0, 0.3)):
            compare_with_reference(lengths, lengths, 1, 32, torch.float32, causal, p)
    compare_with_reference([200, 1], [1, 200], 2, 20, torch.float32, False, 0.3)


@check
def packed_attention_has_the_same_bits_for_every_number_of_threads():
    lengths = [(7 * i) % 41 for i in range(60)]
    inputs = qkv(lengths, lengths, 4 * 32)
    for causal, p in itertools.product((False, True), (0.0, 0.3)):
        expected = results(lengths, lengths, 4, inputs, causal, p)
        for threads in (2, 3, 8):
            torch.set_num_threads(threads)
            try:
                found = results(lengths, lengths, 4, inputs, causal, p)
            finally:
                torch.set_num_threads(1)
            for a, b in zip(found, expected):
                assert torch.equal(a, b), f"{threads} threads, causal {causal}, p {p}"


@check
def packed_attention_of_a_sequence_has_the_same_bits_alone():
    lengths = [12, 33, 1, 50, 0, 40, 16, 129]
    for width, causal in itertools.product((16, 20), (False, True)):
        inputs = qkv(lengths, lengths, 2 * width)
        together = results(lengths, lengths, 2, inputs, causal, 0.0)
        for start, length in zip(offsets_of(lengths).tolist(), lengths):
            rows = slice(start, start + length)
            # The same upstream as in the batch.
            alone = [t[rows].detach().requires_grad_() for t in inputs]
            output = attend(ops.packed_attention, [length], [length], 2, causal)(*alone)
            upstream = torch.arange(together[0].numel()).view(together[0].shape).remainder(17).float()
            found = [output.detach(), *torch.autograd.grad(output, alone, upstream[rows])]
            for a, b in zip(found, together):
                assert torch.equal(a, b[rows]), f"width {width}, length {length}, causal {causal}"


@check
def packed_attention_reads_rows_within_wider_rows():
    lengths, width = [5, 20, 33], 3 * 32
    for apart in (32, 20):
        wide = rand(sum(lengths), 3 * width, dtype=torch.float32, grad=False)
        parts = [wide[:, i * width : i * width + apart] for i in range(3)]
        upstream = rand(sum(lengths), 2 * apart, dtype=torch.float32, grad=False)[:, ::2]
        found = []
        for inputs, up in ((parts, upstream), ([t.contiguous() for t in parts], upstream.contiguous())):
            inputs = [t.detach().requires_grad_() for t in inputs]
            output = attend(ops.packed_attention, lengths, lengths, 2, True, 0.3)(*inputs)
            found.append([output, *torch.autograd.grad(output, inputs, up)])
        for a, b in zip(*found):
            assert torch.equal(a, b)


@check
def packed_attention_without_keys_or_queries():
    # Allocated memory is seldom zero by itself: the gaps must be cleared.
    queries, keys = [3, 0, 2, 0, 4], [0, 5, 2, 0, 0]
    for _ in range(3):
        junk = [torch.full((9, 32), float("nan")) for _ in range(8)]
        del junk
        output, gq, gk, gv = results(queries, keys, 2, qkv(queries, keys, 32), False, 0.3)
        for rows in (slice(0, 3), slice(5, 9)):
            assert output[rows].abs().sum() == 0 and gq[rows].abs().sum() == 0
        assert gk[:5].abs().sum() == 0 and gv[:5].abs().sum() == 0
        assert output[3:5].abs().sum() > 0 and gv[5:].abs().sum() > 0


@check
def packed_attention_passes_on_what_is_not_finite():
    lengths, width = [6, 20, 9], 16
    for number, which, row in itertools.product((float("nan"), float("inf"), -float("inf")), range(3), (6, 11, 25)):
        for causal in (False, True):
            inputs = [t.detach().clone() for t in qkv(lengths, lengths, width)]
            expected = results(lengths, lengths, 1, inputs, causal, 0.0)
            inputs[which][row, 3] = number
            found = results(lengths, lengths, 1, inputs, causal, 0.0)
            for a, b in zip(found, expected):
                for rows in (slice(0, 6), slice(26, 35)):
                    assert torch.equal(a[rows], b[rows]), "it left its sequence"
            if number != number:
                assert not found[0][6:26].isfinite().all()
            if not causal:
                reference = attend(ops.packed_attention_reference, lengths, lengths, 1)(*inputs)
                assert torch.equal(found[0].isfinite(), reference.isfinite())


@check
def packed_attention_of_large_scores():
    # A single key takes all: neither exp nor the sum may overflow.
    for scale in (1e2, 1e4, 1e18):
        inputs = [(t * scale).detach() if i < 2 else t.detach() for i, t in enumerate(qkv([20], [20], 32))]
        output = attend(ops.packed_attention, [20], [20], 1)(*inputs)
        expected = attend(ops.packed_attention_reference, [20], [20], 1)(*inputs)
        close(output, expected, 1e-4)


@check
def packed_attention_passes_finite_differences():
    for causal, p in itertools.product((False, True), (0.0, 0.4)):
        queries, keys = [3, 1, 2], [3, 1, 2] if causal else [2, 0, 4]
        inputs = qkv(queries, keys, 6, torch.float64)
        function = attend(ops.packed_attention, queries, keys, 2, causal, p)
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)
