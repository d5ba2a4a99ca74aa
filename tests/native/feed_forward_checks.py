"""Checks of torchformer::feed_forward."""
import itertools

import torch

from support import TOLERANCE, check, compare, generator, ops, rand, refuses


def network(rows, d=4, f=6, e=5, dtype=torch.float64, biases=(True, True)):
    return [rand(*rows, d, dtype=dtype, seed=21), rand(f, d, dtype=dtype, seed=22),
            rand(f, dtype=dtype, seed=23) if biases[0] else None, rand(e, f, dtype=dtype, seed=24),
            rand(e, dtype=dtype, seed=25) if biases[1] else None]


def with_network(function, biases):
    """A function of the tensors that are there."""
    def called(*tensors):
        given = list(tensors)
        x, w1 = given.pop(0), given.pop(0)
        b1 = given.pop(0) if biases[0] else None
        w2 = given.pop(0)
        return function(x, w1, b1, w2, given.pop(0) if biases[1] else None)
    return called


BIASES = list(itertools.product((True, False), repeat=2))


@check
def feed_forward_by_hand():
    x, w1, b1 = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 1.0], [-1.0, 0.0]]), torch.tensor([0.5, 0.5])
    w2, b2 = torch.tensor([[2.0, 7.0]]), torch.tensor([-1.0])
    for f in (ops.feed_forward, ops.feed_forward_reference):
        assert f(x, w1, b1, w2, b2).tolist() == [[6.0]]
        assert f(x, w1, None, w2, None).tolist() == [[6.0]]
        assert f(x, w1, b1, w2, b2, 1.0).tolist() == [[-1.0]]


@check
def feed_forward_equals_its_reference():
    for dtype, tolerance in TOLERANCE.items():
        for rows, biases, p in itertools.product(((), (3,), (2, 3), (0,), (2, 0)), BIASES, (0.0, 0.3, 1.0)):
            inputs = [t for t in network(rows, dtype=dtype, biases=biases) if t is not None]
            both = [with_network(lambda *t, f=f: f(*t, p, generator=generator()), biases)
                    for f in (ops.feed_forward, ops.feed_forward_reference)]
            compare(*both, inputs, tolerance)


@check
def feed_forward_equals_pytorch():
    for dtype, tolerance in TOLERANCE.items():
        F = torch.nn.functional
        compare(lambda *t: ops.feed_forward(*t),
                lambda x, w1, b1, w2, b2: F.linear(F.relu(F.linear(x, w1, b1)), w2, b2),
                network((3, 7), 16, 32, 16, dtype), tolerance)


@check
def feed_forward_passes_finite_differences():
    for biases, p in itertools.product(BIASES, (0.0, 0.4)):
        inputs = [t for t in network((2, 3), biases=biases) if t is not None]
        function = with_network(lambda *t: ops.feed_forward(*t, p, generator=generator()), biases)
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)
        for wanted in itertools.product((False, True), repeat=len(inputs)):
            if any(wanted):
                some = [t.detach().requires_grad_(w) for t, w in zip(inputs, wanted)]
                assert torch.autograd.gradcheck(function, some)


@check
def feed_forward_refuses_bad_arguments():
    x, w1, b1, w2, b2 = (t.detach() for t in network((2, 3)))
    for f in (ops.feed_forward, ops.feed_forward_reference):
        refuses("ERR_SHAPE", "w_1 must be [F, 4]", f, x, w1.t(), b1, w2, b2)
        refuses("ERR_SHAPE", "w_1 must be [F, 4]", f, x, w1[0], b1, w2, b2)
        refuses("ERR_SHAPE", "b_1 must be [6]", f, x, w1, b2, w2, b2)
        refuses("ERR_SHAPE", "w_2 must be [E, 6]", f, x, w1, b1, w2.t(), b2)
        refuses("ERR_SHAPE", "b_2 must be [5]", f, x, w1, b1, w2, b1)
        refuses("ERR_SHAPE", "[..., D]", f, torch.tensor(1.0).double(), w1, b1, w2, b2)
        refuses("ERR_DTYPE", "w_2", f, x, w1, b1, w2.float(), b2)
        refuses("ERR_DTYPE", "b_1", f, x, w1, b1.float(), w2, b2)
        refuses("ERR_DTYPE", "input", f, x.bool(), w1, b1, w2, b2)
        refuses("ERR_DEVICE", "w_1", f, x, w1.to("meta"), b1, w2, b2)
        for p in (-0.1, 1.1, float("nan")):
            refuses("ERR_ARGUMENT", "dropout_p", f, x, w1, b1, w2, b2, p)
