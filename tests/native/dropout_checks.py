"""Checks of torchformer::dropout."""
import itertools

import torch

from support import TOLERANCE, check, close, generator, ops, rand, refuses


@check
def dropout_keeps_or_zeroes_and_scales_and_so_does_its_gradient():
    for dtype, p, shape in itertools.product(TOLERANCE, (0.0, 0.1, 0.5, 1.0), ((), (0,), (1000,), (3, 4, 5))):
        x = rand(*shape, dtype=dtype)
        torch.manual_seed(3)
        got = ops.dropout(x, p)
        torch.manual_seed(3)
        kept = ops.dropout(torch.ones_like(x), p) != 0
        expected = x * kept / (1 - p) if p < 1 else x * 0
        close(got, expected, TOLERANCE[dtype], f"{dtype} {p} {shape}")
        upstream = rand(*shape, dtype=dtype, grad=False, seed=2)
        close(torch.autograd.grad(got, x, upstream)[0], torch.autograd.grad(expected, x, upstream)[0], TOLERANCE[dtype])


@check
def dropout_adds_its_residual_as_its_reference_does():
    for dtype, p, shape in itertools.product(TOLERANCE, (0.0, 0.1, 0.5, 1.0), ((), (0,), (1000,), (3, 4, 5))):
        x, residual = rand(*shape, dtype=dtype), rand(*shape, dtype=dtype, seed=3)
        upstream = rand(*shape, dtype=dtype, grad=False, seed=2)
        results = []
        for op in (ops.dropout, ops.dropout_reference):
            y = op(x, p, residual=residual, generator=generator())
            results.append((y, *torch.autograd.grad(y, (x, residual), upstream)))
        for got, expected in zip(*results):
            close(got, expected, TOLERANCE[dtype], f"{dtype} {p} {shape}")
        # Without a graph, and with one argument alone in it.
        for needed in ((False, False), (True, False), (False, True)):
            a, b = (t.detach().requires_grad_(n) for t, n in zip((x, residual), needed))
            y = ops.dropout(a, p, residual=b, generator=generator())
            close(y, results[0][0], TOLERANCE[dtype])
            assert y.requires_grad == any(needed)
            if any(needed):
                index = needed.index(True)
                close(torch.autograd.grad(y, (a, b)[index], upstream)[0], results[0][1 + index], TOLERANCE[dtype])


@check
def dropout_with_everything_dropped_is_the_residual_whatever_the_input():
    x = torch.tensor([float("inf"), float("nan"), 1.0])
    residual = torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(ops.dropout(x, 1.0, residual=residual), residual)


@check
def dropout_refuses_a_residual_of_another_shape_or_dtype():
    x = rand(3, 4, dtype=torch.float32)
    refuses("ERR_SHAPE", "residual", ops.dropout, x, 0.5, residual=rand(4, dtype=torch.float32))
    refuses("ERR_DTYPE", "residual", ops.dropout, x, 0.5, residual=rand(3, 4, dtype=torch.float64))


@check
def dropout_drops_as_often_as_told():
    x = torch.ones(200_000)
    for p in (0.1, 0.5, 0.9):
        y = ops.dropout(x, p, generator=generator())
        share = (y == 0).double().mean().item()
        assert abs(share - p) < 5e-3, (p, share)
        close(y[y != 0], torch.full_like(y[y != 0], 1 / (1 - p)), 1e-6)
        assert torch.equal(y, ops.dropout(x, p, generator=generator()))
        assert not torch.equal(y, ops.dropout(x, p, generator=generator(8)))


@check
def dropout_masks_look_independent():
    """Neighbours in a row, in a column and under the next seed are kept together as often as chance."""
    n, p = 1000, 0.5
    kept = [ops.dropout(torch.ones(n, n), p, generator=generator(s)) != 0 for s in (1, 2)]
    pairs = {
        "row": (kept[0][:, 1:], kept[0][:, :-1]),
        "column": (kept[0][1:], kept[0][:-1]),
        "shifted row": (kept[0][1:, 1:], kept[0][:-1, :-1]),
        "seed": (kept[0], kept[1]),
    }
    for name, (a, b) in pairs.items():
        both = (a & b).double().mean().item()
        assert abs(both - 0.25) < 3e-3, (name, both)
    for line in (kept[0].double().mean(0), kept[0].double().mean(1)):
        # 1000 draws each: a standard deviation of 0.0158 around the share kept.
        assert abs(line.std().item() - 0.0158) < 2e-3 and (line - 0.5).abs().max() < 0.08


@check
def dropout_is_the_same_for_every_number_of_threads():
    threads = torch.get_num_threads()
    x = rand(300, 700, dtype=torch.float32, grad=False)
    try:
        results = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            results.append(ops.dropout(x, 0.3, generator=generator()))
        assert all(torch.equal(results[0], other) for other in results)
    finally:
        torch.set_num_threads(threads)


@check
def dropout_passes_finite_differences():
    for p in (0.0, 0.4, 1.0):
        function = lambda x: ops.dropout(x, p, generator=generator())
        assert torch.autograd.gradcheck(function, (rand(3, 5),))
        assert torch.autograd.gradgradcheck(function, (rand(3, 5),))


@check
def dropout_never_returns_its_input():
    x = torch.ones(3)
    assert ops.dropout(x, 0.0).data_ptr() != x.data_ptr()


@check
def dropout_refuses_bad_arguments():
    for p in (-1e-9, 1.0000001, float("nan")):
        refuses("ERR_ARGUMENT", "p must be a probability", ops.dropout, torch.ones(2), p)
    refuses("ERR_DTYPE", "input", ops.dropout, torch.ones(2).long(), 0.5)
    refuses("ERR_ARGUMENT", "dense", ops.dropout, torch.ones(2, 2).to_sparse(), 0.5)
