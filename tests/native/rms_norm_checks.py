"""Checks of torchformer::rms_norm."""
import itertools

import torch

from support import TOLERANCE, check, close, compare, ops, rand, refuses

BOTH = (ops.rms_norm, ops.rms_norm_reference)


@check
def rms_norm_by_hand():
    x = torch.tensor([[3.0, 4.0], [-3.0, 4.0]], dtype=torch.float64)
    for f in BOTH:
        # mean(x^2) = 12.5; with eps = 3.5 the root is 4.
        close(f(x, torch.tensor([1.0, 2.0]).double(), 3.5),
              torch.tensor([[0.75, 2.0], [-0.75, 2.0]]).double(), 1e-15)
    # The default eps, 1e-6, against a row whose mean square is 3e-6.
    double = dict(dtype=torch.float64)
    for f in BOTH:
        close(f(torch.full((4,), 3e-6, **double).sqrt(), torch.ones(4, **double)),
              torch.full((4,), 0.75, **double).sqrt(), 1e-12)


@check
def rms_norm_of_zeros_has_a_finite_gradient():
    for dtype, f in itertools.product(TOLERANCE, BOTH):
        x = torch.zeros(3, 5, dtype=dtype, requires_grad=True)
        scale = torch.full((5,), 2.0, dtype=dtype, requires_grad=True)
        y = f(x, scale)
        gx, gs = torch.autograd.grad(y, (x, scale), torch.full_like(y, 0.5))
        assert y.abs().sum() == 0 and gs.abs().sum() == 0
        close(gx, torch.full_like(gx, 1000.0), 1e-6, f"{dtype}")
    # The smallest eps there is in float32.
    x = torch.zeros(2, 3, requires_grad=True)
    gx, = torch.autograd.grad(ops.rms_norm(x, torch.ones(3), 1.2e-38), x, torch.ones(2, 3))
    assert torch.isfinite(gx).all()


@check
def rms_norm_of_half_types_is_computed_in_float32():
    # The squares of these overflow float16, their mean does not fit either.
    x = torch.tensor([[1000.0, -2000.0, 4000.0, 8000.0]], dtype=torch.float16, requires_grad=True)
    one = torch.ones(4, dtype=torch.float16)
    y = ops.rms_norm(x, one)
    close(y, torch.nn.functional.rms_norm(x.detach().double(), (4,), eps=1e-6).half(), 1e-3)
    gx, = torch.autograd.grad(y.sum(), x)
    assert torch.isfinite(gx).all() and gx.abs().sum() > 0


@check
def rms_norm_equals_its_reference():
    for dtype, tolerance in TOLERANCE.items():
        for shape in ((5,), (1,), (3, 1), (3, 8), (2, 3, 33), (0, 6), (2, 0, 6)):
            inputs = [rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype, seed=9)]
            compare(lambda *t: ops.rms_norm(*t), lambda *t: ops.rms_norm_reference(*t), inputs, tolerance)


@check
def rms_norm_equals_pytorch():
    for dtype, tolerance in TOLERANCE.items():
        for eps in (1e-6, 1e-2):
            inputs = [rand(4, 33, dtype=dtype), rand(33, dtype=dtype, seed=9)]
            compare(lambda x, a: ops.rms_norm(x, a, eps),
                    lambda x, a: torch.nn.functional.rms_norm(x, (33,), a, eps), inputs, tolerance)


@check
def rms_norm_passes_finite_differences():
    for eps in (1e-6, 0.3):
        inputs = (rand(2, 3, 5), rand(5, seed=9))
        function = lambda *t: ops.rms_norm(*t, eps)
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)
        for wanted in ((True, False), (False, True)):
            assert torch.autograd.gradcheck(
                function, [t.detach().requires_grad_(w) for t, w in zip(inputs, wanted)])
    one_feature = (rand(3, 1), rand(1))
    assert torch.autograd.gradcheck(ops.rms_norm, one_feature)
    assert torch.autograd.gradcheck(ops.rms_norm, (torch.zeros(2, 4).double().requires_grad_(), rand(4), 0.5))


@check
def rms_norm_leaves_its_input_alone_and_takes_any_strides():
    x = rand(6, 4).t()
    before = x.detach().clone()
    compare(lambda x, a: ops.rms_norm(x.t().contiguous().t(), a),
            lambda x, a: ops.rms_norm(x.contiguous(), a), [x, rand(6)], 1e-12)
    assert torch.equal(x.detach(), before)
    row = rand(6, grad=False)
    close(ops.rms_norm(row.expand(3, 6), row), ops.rms_norm(row.repeat(3, 1), row), 0)


@check
def rms_norm_refuses_bad_arguments():
    x, a = rand(2, 3, 4, grad=False), rand(4, grad=False)
    for f in BOTH:
        refuses("ERR_SHAPE", "scale must be [4]", f, x, rand(3))
        refuses("ERR_SHAPE", "scale must be [4]", f, x, a[None])
        refuses("ERR_SHAPE", "[..., D]", f, torch.tensor(1.0).double(), a)
        refuses("ERR_SHAPE", "[..., D]", f, x[..., :0], a[:0])
        refuses("ERR_DTYPE", "must be float16", f, x.long(), a)
        refuses("ERR_DTYPE", "dtype of input", f, x, a.float())
        refuses("ERR_DEVICE", "device of input", f, x, a.to("meta"))
        refuses("ERR_ARGUMENT", "dense", f, x.to_sparse(), a)
        for eps in (0.0, -1.0, float("nan"), float("inf")):
            refuses("ERR_ARGUMENT", "eps", f, x, a, eps)
        refuses("ERR_ARGUMENT", "eps", f, x.float(), a.float(), 1e-60)
