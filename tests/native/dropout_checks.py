"""Checks of torchformer::dropout."""
import itertools

import torch

from support import TOLERANCE, check, close, generator, ops, rand, refuses


@check
def dropout_equals_pytorch_of_the_same_seed():
    for dtype, p, shape in itertools.product(TOLERANCE, (0.0, 0.1, 0.5, 1.0), ((), (0,), (1000,), (3, 4, 5))):
        x = rand(*shape, dtype=dtype)
        torch.manual_seed(3)
        expected = torch.nn.functional.dropout(x, p)
        torch.manual_seed(3)
        got = ops.dropout(x, p)
        close(got, expected, 0 if dtype in (torch.float32, torch.float64) and p == 0.5 else TOLERANCE[dtype], f"{dtype} {p} {shape}")
        upstream = rand(*shape, dtype=dtype, grad=False, seed=2)
        close(torch.autograd.grad(got, x, upstream)[0], torch.autograd.grad(expected, x, upstream)[0], TOLERANCE[dtype])


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
