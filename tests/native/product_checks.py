"""Matrix products: every way against float64, all small shapes in all layouts, and the bits of rows."""
import os
import subprocess
import sys

import torch

from support import LIBRARY, check, ops, rand

multiply = torch.ops.torchformer_device.multiply


def own_ways():
    """The sets of instructions that this processor has a kernel for."""
    tried = torch.ones(1, 1)
    found = []
    for way in ("avx2", "avx512"):
        try:
            multiply(tried, tried, way)
            found.append(way)
        except RuntimeError:
            pass
    return found


def layouts(a, b):
    """a b with its factors stored as the three products of a linear layer store them, and with gaps."""
    yield "g W", a.contiguous(), b.contiguous()
    yield "x W^T", a.contiguous(), b.t().contiguous().t()
    yield "g^T x", a.t().contiguous().t(), b.contiguous()
    wide_a = torch.empty(a.size(0), 2 * a.size(1) + 3, dtype=a.dtype).fill_(torch.nan)
    wide_b = torch.empty(2 * b.size(0) + 1, b.size(1) + 5, dtype=b.dtype).fill_(torch.nan)
    strided_a = wide_a[:, 1 : 1 + 2 * a.size(1) : 2].copy_(a)
    strided_b = wide_b[1 : 1 + 2 * b.size(0) : 2, 3 : 3 + b.size(1)].copy_(b)
    yield "strided", strided_a, strided_b


@check
def all_shapes_up_to_40_are_parts_of_one_product():
    # An element depends on its row and its column alone, so a product of parts is a part of the
    # product, to the last bit.
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-13)):
        for way in own_ways():
            for depth in range(41):
                a, b = rand(40, depth, grad=False), rand(depth, 40, grad=False)
                exact = a @ b
                a, b = a.to(dtype), b.to(dtype)
                whole = multiply(a, b, way)
                assert (whole.double() - exact).abs().max() <= tolerance * max(1, depth)
                for rows in range(41):
                    for columns in (*range(1, 41, 3), 40) if rows % 7 else range(41):
                        expected = whole[:rows, :columns]
                        for name, x, y in layouts(a[:rows], b[:, :columns]):
                            got = multiply(x, y, way)
                            assert torch.equal(got, expected), (way, name, dtype, rows, depth, columns)


@check
def large_products_are_those_of_float64():
    sizes = [(257, 513, 129), (1, 2048, 512), (3, 700, 1000), (735, 512, 96), (64, 1025, 8000), (2100, 33, 47)]
    for dtype, tolerance in ((torch.float32, 2e-6), (torch.float64, 1e-14)):
        for rows, depth, columns in sizes:
            a, b = rand(rows, depth, grad=False), rand(depth, columns, grad=False)
            exact = a @ b
            scale = (a.abs() @ b.abs()).max()
            for way in (*own_ways(), "mkl", "onednn", ""):
                for name, x, y in layouts(a.to(dtype), b.to(dtype)):
                    error = (multiply(x, y, way).double() - exact).abs().max() / scale
                    assert error <= tolerance, (way, name, dtype, rows, depth, columns, error)


@check
def kernels_of_all_instructions_give_the_same_bits():
    for rows, depth, columns in ((735, 512, 96), (5, 1500, 70), (64, 33, 300)):
        a = rand(rows, depth, dtype=torch.float32, grad=False)
        b = rand(depth, columns, dtype=torch.float32, grad=False)
        results = [multiply(a, b, way) for way in own_ways()]
        assert all(torch.equal(results[0], result) for result in results[1:])


@check
def fixed_rows_have_the_same_bits_alone_in_any_order_and_on_any_number_of_threads():
    weight, bias = rand(300, 700, dtype=torch.float32), rand(300, dtype=torch.float32)
    input = rand(90, 700, dtype=torch.float32, grad=False)
    threads = torch.get_num_threads()
    try:
        for recorded in (False, True):
            with torch.set_grad_enabled(recorded):
                linear = lambda rows: ops.linear(rows, weight, bias, products="own_rows")
                together = linear(input)
                order = torch.randperm(90)
                assert torch.equal(linear(input[order]), together[order])
                for count in (1, 2, 3, 7, 20):
                    for start in range(0, 90 - count, 11):
                        assert torch.equal(linear(input[start : start + count]), together[start : start + count])
                for number in (1, 2, 3, 8):
                    torch.set_num_threads(number)
                    assert torch.equal(linear(input), together)
    finally:
        torch.set_num_threads(threads)


@check
def fixed_rows_hold_in_the_feed_forward_network():
    w1, w2 = rand(130, 70, dtype=torch.float32), rand(70, 130, dtype=torch.float32)
    b1, b2 = rand(130, dtype=torch.float32), rand(70, dtype=torch.float32)
    input = rand(50, 70, dtype=torch.float32, grad=False)
    for activation in ("relu", "gelu"):
        run = lambda rows: ops.feed_forward(rows, w1, b1, w2, b2, activation=activation, products="own_rows")
        together = run(input)
        for row in range(0, 50, 7):
            assert torch.equal(run(input[row : row + 1]), together[row : row + 1]), activation


@check
def nan_and_infinity_reach_the_rows_and_columns_that_they_belong_to():
    for way in own_ways():
        for value in (torch.nan, torch.inf, -torch.inf):
            a, b = torch.ones(20, 30), torch.ones(30, 50)
            a[3, 4] = value
            b[5, 6] = value
            found = multiply(a, b, way)
            expected = a @ b
            assert torch.equal(found.isnan(), expected.isnan()), (way, value)
            assert torch.equal(found.isinf(), expected.isinf()), (way, value)
            assert found[0, 0] == 30
        # Infinity times zero.
        a, b = torch.zeros(2, 3), torch.zeros(3, 40)
        a[0, 1] = torch.inf
        assert multiply(a, b, way)[0].isnan().all() and (multiply(a, b, way)[1] == 0).all()


@check
def denormal_numbers_are_not_flushed():
    for way in own_ways():
        tiny = torch.full((3, 1), 1e-40)
        assert torch.equal(multiply(tiny, torch.ones(1, 33), way), tiny.expand(3, 33))


@check
def a_product_over_nothing_is_zero():
    for way in (*own_ways(), "mkl", "onednn", ""):
        for dtype in (torch.float32, torch.float64):
            made = multiply(torch.empty(4, 0, dtype=dtype), torch.empty(0, 5, dtype=dtype), way)
            assert torch.equal(made, torch.zeros(4, 5, dtype=dtype)), way
            assert multiply(torch.ones(0, 3), torch.ones(3, 5), way).shape == (0, 5)
            assert multiply(torch.ones(4, 3), torch.ones(3, 0), way).shape == (4, 0)


@check
def a_kept_weight_is_packed_again_after_every_change():
    weight = rand(64, 32, dtype=torch.float32, grad=False)
    input = rand(4, 32, dtype=torch.float32, grad=False)
    run = lambda: ops.linear(input, weight)
    expected = lambda: input.double() @ weight.double().t()
    close = lambda: (run().double() - expected()).abs().max() < 1e-5
    assert close() and close()
    weight.mul_(2)
    assert close()
    weight[3, 4] = 100.0
    assert close()
    weight.t()[0].zero_()
    assert close()
    # Another weight at the same place.
    for seed in range(5):
        del weight
        weight = rand(64, 32, dtype=torch.float32, grad=False, seed=seed + 1)
        assert close()
    # A view of the same storage, and one with the sides exchanged.
    square = rand(32, 32, dtype=torch.float32, grad=False)
    for view in (square, square.t(), square[:16], square[16:]):
        found = ops.linear(input, view)
        assert (found.double() - input.double() @ view.double().t()).abs().max() < 1e-5


@check
def a_kept_weight_is_packed_again_after_changes_that_no_counter_tells_of():
    changes = {
        "data": lambda weight: weight.data.add_(1),
        "numpy": lambda weight: weight.detach().numpy().__iadd__(1),
        "set_": lambda weight: torch.empty(0).set_(weight.detach().untyped_storage()).fill_(3),
    }
    for optimizer in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD):
        changes[optimizer.__name__] = lambda weight, make=optimizer: make([weight], lr=0.1, fused=True).step()
    input = rand(3, 40, dtype=torch.float32, grad=False)
    for name, change in changes.items():
        weight = rand(50, 40, dtype=torch.float32)
        weight.grad = rand(50, 40, dtype=torch.float32, grad=False)
        with torch.no_grad():
            ops.linear(input, weight)
            change(weight)
            exact = input.double() @ weight.double().t()
            assert (ops.linear(input, weight).double() - exact).abs().max() < 1e-4, name


@check
def forward_rows_have_the_same_bits_however_the_factors_are_stored():
    weight = rand(96, 300, dtype=torch.float32, grad=False)
    input = rand(300, 300, dtype=torch.float32, grad=False)
    expected = ops.linear(input, weight)
    for stored in (weight, weight.t().contiguous().t()):
        for rows in (input, input.t().contiguous().t()):
            assert torch.equal(ops.linear(rows, stored), expected)
            assert torch.equal(ops.linear(rows[:11], stored), expected[:11])


@check
def an_unknown_way_is_refused():
    try:
        multiply(torch.ones(2, 2), torch.ones(2, 2), "blas")
    except RuntimeError as error:
        assert "multiply must be one of 'mkl'" in str(error) and "got 'blas'" in str(error)
    else:
        raise AssertionError("accepted")


@check
def a_training_step_is_the_same_by_every_way():
    program = """
import sys, torch
torch.ops.load_library(sys.argv[1])
T = torch.ops.torchformer
torch.manual_seed(1)
x, w1, w2 = torch.randn(70, 64), torch.randn(128, 64), torch.randn(64, 128)
b1, b2, v = torch.randn(128), torch.randn(64), torch.randn(500, 64)
leaves = [t.requires_grad_() for t in (w1, b1, w2, b2, v)]
for step in range(5):
    h = T.feed_forward(x, w1, b1, w2, b2, 0.1, generator=torch.Generator().manual_seed(step))
    loss = T.linear_cross_entropy(h / 20, v, None, torch.arange(70), scale=1 / 70)[0]
    gradients = torch.autograd.grad(loss, leaves)
    with torch.no_grad():
        for leaf, gradient in zip(leaves, gradients):
            leaf -= 0.1 * gradient
    print(loss.item())
"""
    losses = []
    for way in ("mkl", "onednn", *own_ways(), ""):
        environment = {**os.environ, "TORCHFORMER_GEMM": way}
        run = subprocess.run(
            [sys.executable, "-c", program, LIBRARY], env=environment, capture_output=True, text=True, check=True
        )
        losses.append([float(line) for line in run.stdout.split()])
    for other in losses[1:]:
        assert len(other) == 5
        for got, expected in zip(other, losses[0]):
            assert abs(got - expected) <= 1e-5 * abs(expected)
