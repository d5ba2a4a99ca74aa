"""Checks of torchformer::layer_norm."""
import itertools

import torch

from support import DIALECTS, TOLERANCE, check, close, compare, ops, rand, refuses


@check
def layer_norm_gives_the_numbers_of_each_dialect():
    x, one, zero = torch.tensor([1.0, 0, 0, 0]), torch.ones(4), torch.zeros(4)
    for options, expected in (
        (dict(eps=1e-6, sample_std=True, eps_outside=True), [1.499997, -0.499999, -0.499999, -0.499999]),
        (dict(eps=1e-6), [1.732046, -0.577349, -0.577349, -0.577349]),
        (dict(eps=1e-5), [1.732005, -0.577335, -0.577335, -0.577335]),
    ):
        for function in (ops.layer_norm, ops.layer_norm_reference):
            close(function(x, one, zero, **options), torch.tensor(expected), 1e-6, str(options))


@check
def layer_norm_of_equal_values_has_a_finite_gradient():
    upstream = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
    for options, size in ((dict(sample_std=True, eps_outside=True), 1e6), (dict(), 1e3)):
        for function in (ops.layer_norm, ops.layer_norm_reference):
            x = torch.full((4,), 3.0, dtype=torch.float64, requires_grad=True)
            y = function(x, torch.ones(4).double(), torch.zeros(4).double(), 1e-6, **options)
            got, = torch.autograd.grad(y, x, upstream)
            expected = torch.tensor([-1.5, -0.5, 0.5, 1.5], dtype=torch.float64) * size
            close(got, expected, 1e-9, f"{options}")
    for options, value in itertools.product(DIALECTS, (0.1, 1e8, -7.3e-5)):
        x = torch.full((3, 7), value, requires_grad=True)
        y = ops.layer_norm(x, torch.ones(7), torch.zeros(7), 1e-6, **options)
        y.backward(rand(3, 7, dtype=torch.float32, grad=False))
        assert torch.isfinite(y).all() and torch.isfinite(x.grad).all(), (options, value)


def rows_that_overflow(dtype, width):
    """Five rows, of which the third and fourth have squares beyond the dtype of the statistics."""
    size = (1e154 if dtype == torch.float64 else 1e19) * (1 if width > 3 else 3)
    x = rand(5, width, dtype=torch.float64, grad=False)
    x[2] = size * (1 + torch.arange(width) % 4)
    x[3] = x[2] * torch.tensor([1.0, -1]).repeat(width)[:width]
    return x.to(dtype).requires_grad_()


def every_norm(dtype, width):
    """Norms as functions of their rows and scale, with and without what stands around them."""
    shift = torch.zeros(width, dtype=dtype)
    residual = torch.zeros(5, width, dtype=dtype)
    for suffix in ("", "_reference"):
        op = lambda name, suffix=suffix: getattr(ops, name + suffix)
        yield "rms_norm" + suffix, lambda x, a, f=op("rms_norm"): f(x, a)
        for options in DIALECTS:
            yield f"layer_norm{suffix} {options}", lambda x, a, f=op("layer_norm"), o=options: f(x, a, shift, **o)
        for options in (*DIALECTS, dict(centred=False)):
            b = shift if options.get("centred", True) else None
            yield f"add_norm{suffix} {options}", lambda x, a, f=op("add_norm"), o=options, b=b: f(
                x, residual, a, b, **o)[1]
    if dtype != torch.float64:
        yield "layer_norm to half", lambda x, a: ops.layer_norm(x, a, shift, results="bfloat16")


@check
def a_row_whose_squares_overflow_is_nan_in_every_norm_and_its_gradient():
    """What F.layer_norm has for four numbers; for rows of 64 it has zeros, which nobody would notice."""
    four = torch.tensor([1.0, 2, 3, 4]) * 1e19
    assert torch.nn.functional.layer_norm(four, (4,)).isnan().all()
    for dtype, width in itertools.product((torch.float32, torch.float64, torch.bfloat16), (3, 4, 64, 2052)):
        for name, norm in every_norm(dtype, width):
            x = rows_that_overflow(dtype, width)
            scale = torch.ones(width, dtype=dtype, requires_grad=True)
            y = norm(x, scale)
            overflowed = torch.tensor([False, False, True, True, False])
            what = f"{name}, {dtype}, {width}"
            assert torch.equal(y.isnan(), overflowed[:, None].expand(5, width)), what
            y.float().sum().backward()
            assert x.grad[overflowed].isnan().all() and scale.grad.isnan().all(), what
            assert torch.isfinite(x.grad[~overflowed]).all(), what
            with torch.no_grad():
                assert torch.equal(norm(x, scale).isnan(), y.isnan()), what


@check
def a_row_whose_squares_are_near_the_largest_number_is_computed():
    x = torch.tensor([[1.0, 2, 3]]) * 1e19
    expected = torch.tensor([[-1.2247449, 0, 1.2247449]])
    one, zero = torch.ones(3), torch.zeros(3)
    for function in (ops.layer_norm, ops.layer_norm_reference):
        for options in ({}, dict(eps_outside=True)):
            close(function(x, one, zero, **options), expected, 1e-6, str(options))
        close(function(x, one, zero, results="bfloat16").float(), expected, 1e-2)
    close(ops.add_norm(x, torch.zeros_like(x), one, zero)[1], expected, 1e-6)


@check
def layer_norm_equals_its_reference():
    for dtype, tolerance in TOLERANCE.items():
        for options, shape in itertools.product(DIALECTS, ((5,), (3, 8), (2, 3, 33), (0, 6), (2, 0, 6))):
            inputs = [rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype), rand(shape[-1], dtype=dtype, seed=9)]
            compare(lambda *t: ops.layer_norm(*t, 1e-6, **options),
                    lambda *t: ops.layer_norm_reference(*t, 1e-6, **options), inputs, tolerance)


@check
def the_norm_kernel_sums_many_rows_in_blocks_the_same_for_every_number_of_threads():
    """More rows than blocks, a width that no vector length divides, and the last block not full."""
    threads = torch.get_num_threads()
    dialect = dict(sample_std=True, eps_outside=True)
    x, scale, shift = (rand(*shape, dtype=torch.float32) for shape in ((5003, 37), (37,), (37,)))
    upstream = rand(5003, 37, dtype=torch.float32, grad=False, seed=2)

    def gradients(function):
        y = function(x, scale, shift, 1e-6, **dialect)
        return (y, *torch.autograd.grad(y, (x, scale, shift), upstream))

    try:
        results = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            results.append(gradients(ops.layer_norm))
        for other in results[1:]:
            assert all(torch.equal(a, b) for a, b in zip(results[0], other))
    finally:
        torch.set_num_threads(threads)
    wide = [t.double() for t in (x, scale, shift)]
    y = ops.layer_norm_reference(*wide, 1e-6, **dialect)
    expected = (y, *torch.autograd.grad(y, (x, scale, shift), upstream.double()))
    for got, value in zip(results[0], expected):
        close(got, value.float(), 2e-5)


@check
def loops_run_in_the_copy_for_this_processor():
    """With AVX2 come fused multiply-adds, which round once: that tells which copy of a loop ran."""
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return
    x = rand(100, 64, dtype=torch.float32, grad=False)
    scale, shift = (rand(64, dtype=torch.float32, grad=False, seed=s) for s in (2, 3))

    def norm(scale, shift):
        return ops.layer_norm(x, scale, shift, 1e-6, sample_std=True, eps_outside=True)

    normalised = norm(torch.ones(64), torch.zeros(64))
    twice = normalised * scale + shift
    # The product of two float32 numbers is exact in float64.
    once = (normalised.double() * scale.double() + shift.double()).float()
    differ = once != twice
    assert differ.sum() > 100
    assert torch.equal(norm(scale, shift)[differ], once[differ])


@check
def layer_norm_equals_pytorch():
    for dtype, tolerance in TOLERANCE.items():
        inputs = [rand(4, 33, dtype=dtype), rand(33, dtype=dtype), rand(33, dtype=dtype, seed=9)]
        compare(lambda x, a, b: ops.layer_norm(x, a, b, 1e-5),
                lambda x, a, b: torch.nn.functional.layer_norm(x, (33,), a, b, 1e-5), inputs, tolerance)


@check
def layer_norm_passes_finite_differences():
    for options, eps in itertools.product(DIALECTS, (1e-6, 0.3)):
        inputs = (rand(2, 3, 5), rand(5), rand(5, seed=9))
        function = lambda *t: ops.layer_norm(*t, eps, **options)
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)
        for wanted in itertools.product((False, True), repeat=3):
            if any(wanted):
                assert torch.autograd.gradcheck(
                    function, [t.detach().requires_grad_(w) for t, w in zip(inputs, wanted)])


@check
def layer_norm_takes_any_strides():
    x = rand(6, 4).t()
    for options in DIALECTS:
        compare(lambda x, a, b: ops.layer_norm(x.t().contiguous().t(), a, b, **options),
                lambda x, a, b: ops.layer_norm(x.contiguous(), a, b, **options),
                [x, rand(6), rand(6, seed=2)], 1e-12)


@check
def layer_norm_refuses_bad_arguments():
    x, a, b = (rand(2, 3, 4, grad=False), rand(4, grad=False), rand(4, grad=False))
    for f in (ops.layer_norm, ops.layer_norm_reference):
        refuses("ERR_SHAPE", "scale must be [4]", f, x, rand(3), b)
        refuses("ERR_SHAPE", "scale must be [4]", f, x, a[None], b)
        refuses("ERR_SHAPE", "shift must be [4]", f, x, a, rand(5))
        refuses("ERR_SHAPE", "[..., D]", f, torch.tensor(1.0).double(), a, b)
        refuses("ERR_SHAPE", "[..., D]", f, x[..., :0], a[:0], b[:0])
        refuses("ERR_SHAPE", "at least 2 features", f, x[..., :1], a[:1], b[:1], sample_std=True)
        refuses("ERR_DTYPE", "must be float16", f, x.long(), a, b)
        refuses("ERR_DTYPE", "dtype of input", f, x, a.float(), b)
        refuses("ERR_DEVICE", "device of scale", f, x, a, b.to("meta"))
        refuses("ERR_DEVICE", "device of input", f, x, a.to("meta"), b)
        refuses("ERR_ARGUMENT", "dense", f, x.to_sparse(), a, b)
        for eps in (0.0, -1.0, float("nan"), float("inf")):
            refuses("ERR_ARGUMENT", "eps", f, x, a, b, eps)
        refuses("ERR_ARGUMENT", "eps", f, x.float(), a.float(), b.float(), 1e-60)
