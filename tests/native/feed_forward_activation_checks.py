"""Checks of the activations of torchformer::feed_forward other than relu."""
import itertools

import torch

from feed_forward_checks import network
from support import TOLERANCE, check, close, compare, generator, ops, rand, refuses

F = torch.nn.functional
BOTH = (ops.feed_forward, ops.feed_forward_reference)
NAMES = ("x", "w_1", "b_1", "w_2", "b_2", "w_3", "b_3")


def tensors(activation, rows, d=4, f=6, e=5, dtype=torch.float64, absent=()):
    """The tensors of one call by name, those `absent` left out."""
    made = dict(zip(NAMES, network(rows, d, f, e, dtype)))
    if activation == "swiglu":
        made["w_3"] = rand(f, d, dtype=dtype, seed=26)
        made["b_3"] = rand(f, dtype=dtype, seed=27)
    return {name: t for name, t in made.items() if name not in absent}


def called(function, activation, names, p=0.0):
    """`function` of the named tensors, given in that order."""
    def of(*given):
        t = dict(zip(names, given))
        return function(t["x"], t["w_1"], t.get("b_1"), t["w_2"], t.get("b_2"), p, activation=activation,
                        w_3=t.get("w_3"), b_3=t.get("b_3"), generator=generator())
    return of


def absences(activation):
    biases = ("b_1", "b_2", "b_3") if activation == "swiglu" else ("b_1", "b_2")
    for count in range(len(biases) + 1):
        yield from itertools.combinations(biases, count)


def with_pytorch(activation):
    def of(x, w1, b1, w2, b2, p=0.0, *, w_3=None, b_3=None, **_):
        a = F.linear(x, w1, b1)
        h = {"relu": lambda: F.relu(a), "gelu": lambda: F.gelu(a),
             "swiglu": lambda: F.silu(a) * F.linear(x, w_3, b_3)}[activation]()
        return F.linear(F.dropout(h, p), w2, b2)
    return of


@check
def feed_forward_activations_by_hand():
    one = torch.ones(1, 1).double()
    x = torch.tensor([[-1.0], [0.0], [2.0]]).double()
    phi = lambda v: 0.5 * (1 + torch.erf(v / 2 ** 0.5))
    for f in BOTH:
        close(f(x, one, None, one, None, activation="gelu"), x * phi(x), 1e-15)
        close(f(x, one, None, one, None, activation="swiglu", w_3=3 * one, b_3=one[0]),
              x * torch.sigmoid(x) * (3 * x + 1), 1e-15)
        assert torch.equal(f(x, one, None, one, None, activation="relu"), f(x, one, None, one, None))
    # The erf form: the tanh approximation is off by 4e-4 here.
    close(ops.feed_forward(x[2:], one, None, one, None, activation="gelu"),
          torch.tensor([[1.9544997361036416]], dtype=torch.float64), 1e-15)


@check
def feed_forward_activations_equal_their_reference():
    for activation, (dtype, tolerance) in itertools.product(("relu", "gelu", "swiglu"), TOLERANCE.items()):
        for rows, p in itertools.product(((), (3,), (2, 3), (0,), (2, 0)), (0.0, 0.3, 1.0)):
            for absent in absences(activation):
                t = tensors(activation, rows, dtype=dtype, absent=absent)
                compare(*[called(f, activation, t, p) for f in BOTH], list(t.values()), tolerance)


@check
def feed_forward_with_no_features_equals_its_reference():
    for activation, sizes in itertools.product(("gelu", "swiglu"), ((0, 6, 5), (4, 0, 5), (4, 6, 0))):
        t = tensors(activation, (2, 3), *sizes, dtype=torch.float32)
        compare(*[called(f, activation, t, 0.3) for f in BOTH], list(t.values()), 2e-6)


@check
def feed_forward_activations_equal_pytorch():
    for activation, (dtype, tolerance) in itertools.product(("gelu", "swiglu"), TOLERANCE.items()):
        t = tensors(activation, (3, 7), 16, 32, 16, dtype)
        compare(called(ops.feed_forward, activation, t), called(with_pytorch(activation), activation, t),
                list(t.values()), tolerance)


@check
def feed_forward_drops_what_its_reference_drops():
    for activation in ("gelu", "swiglu"):
        t = tensors(activation, (6,), 8, 64, 8)
        results = []
        for f in (lambda *a, generator, **k: ops.feed_forward(*a, **k),
                  lambda *a, generator, **k: ops.feed_forward_reference(*a, **k)):
            torch.manual_seed(3)
            y = called(f, activation, t, 0.4)(*t.values())
            results.append((y, *torch.autograd.grad(y.pow(2).sum(), list(t.values()))))
        for got, expected in zip(*results):
            close(got, expected, 1e-12)


@check
def feed_forward_activations_pass_finite_differences():
    for activation, p in itertools.product(("gelu", "swiglu"), (0.0, 0.4)):
        for absent in absences(activation):
            t = tensors(activation, (3,), 3, 4, 2, absent=absent)
            function = called(ops.feed_forward, activation, t, p)
            assert torch.autograd.gradcheck(function, list(t.values()))
            assert torch.autograd.gradgradcheck(function, list(t.values()))


@check
def feed_forward_activations_give_each_gradient_alone():
    for activation in ("gelu", "swiglu"):
        t = tensors(activation, (3,), 3, 4, 2)
        for f, p in itertools.product((ops.feed_forward,), (0.0, 0.4)):
            full = called(f, activation, t, p)(*t.values()).sum()
            expected = dict(zip(t, torch.autograd.grad(full, list(t.values()))))
            for wanted in itertools.product((False, True), repeat=len(t)):
                if not any(wanted):
                    continue
                some = {n: v.detach().requires_grad_(w) for (n, v), w in zip(t.items(), wanted)}
                asked = [n for n in some if some[n].requires_grad]
                loss = called(f, activation, t, p)(*some.values()).sum()
                for n, got in zip(asked, torch.autograd.grad(loss, [some[n] for n in asked])):
                    assert torch.equal(got, expected[n]), (activation, n, asked)


@check
def feed_forward_with_everything_dropped_is_its_last_bias():
    # Dropped places are stored as a value whose activation and slope must be exactly 0.
    for activation, dtype in itertools.product(("gelu", "swiglu"), TOLERANCE):
        t = tensors(activation, (5,), 8, 64, 3, dtype)
        y = called(ops.feed_forward, activation, t, 1.0)(*t.values())
        assert torch.equal(y, t["b_2"].expand(5, 3))
        # p = 1 would hide a wrong slope behind its scale of 0; this seed drops all 40 here too.
        t = tensors(activation, (5,), 8, 8, 3, dtype)
        y = called(ops.feed_forward, activation, t, 0.999)(*t.values())
        assert torch.equal(y, t["b_2"].expand(5, 3))
        asked = [v for n, v in t.items() if n != "b_2"]
        for g in torch.autograd.grad(y.sum(), asked):
            assert g.abs().max() == 0, (activation, dtype)


@check
def feed_forward_activations_keep_little():
    # One buffer of the hidden layer for gelu, two for swiglu; no mask.
    for activation, p, buffers in (("relu", 0.1, 1), ("gelu", 0.1, 1), ("swiglu", 0.1, 2)):
        t = tensors(activation, (64,), 4, 128, 4, torch.float32)
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda v: saved.append(v) or v, lambda v: v):
            called(ops.feed_forward, activation, t, p)(*t.values())
        given = {v.data_ptr() for v in t.values()}
        assert len(saved) == len(t) + buffers, (activation, len(saved))
        kept = [v for v in saved if v.data_ptr() not in given]
        assert [(tuple(v.shape), v.dtype) for v in kept] == [((64, 128), torch.float32)] * buffers, activation


@check
def feed_forward_activations_refuse_bad_arguments():
    t = {n: v.detach() for n, v in tensors("swiglu", (2, 3)).items()}
    plain = [t[n] for n in NAMES[:5]]
    for f in BOTH:
        for name in ("", "ReLU", "tanh"):
            refuses("ERR_ARGUMENT", f"'relu', 'gelu' or 'swiglu', got '{name}'", f, *plain, activation=name)
        refuses("ERR_ARGUMENT", "needs w_3", f, *plain, activation="swiglu")
        refuses("ERR_ARGUMENT", "needs w_3", f, *plain, activation="swiglu", b_3=t["b_3"])
        for name in ("relu", "gelu"):
            refuses("ERR_ARGUMENT", "'swiglu' only", f, *plain, activation=name, w_3=t["w_3"])
            refuses("ERR_ARGUMENT", "'swiglu' only", f, *plain, activation=name, b_3=t["b_3"])
        for w3 in (t["w_3"].t(), t["w_3"][0], t["w_3"][:5]):
            refuses("ERR_SHAPE", "w_3 must have the shape of w_1, [6, 4]", f, *plain, activation="swiglu", w_3=w3)
        for b3 in (t["b_2"], t["b_3"][None]):
            refuses("ERR_SHAPE", "b_3 must be [6] for a w_3 of [6, 4]", f, *plain, activation="swiglu", w_3=t["w_3"],
                    b_3=b3)
        refuses("ERR_DTYPE", "w_3", f, *plain, activation="swiglu", w_3=t["w_3"].float())
        refuses("ERR_DTYPE", "b_3", f, *plain, activation="swiglu", w_3=t["w_3"], b_3=t["b_3"].float())
        refuses("ERR_DEVICE", "w_3", f, *plain, activation="swiglu", w_3=t["w_3"].to("meta"))
