"""Products with 8-bit and bfloat16 weights: exact where they can be, within the rounding elsewhere."""
import torch

from support import check, rand

multiply = torch.ops.torchformer_device.multiply_narrow
plain = torch.ops.torchformer_device.multiply


def int8_kernels():
    """Kernels of this processor, with the largest whole number of a weight."""
    tried = torch.ones(1, 1)
    for kernel, most in (("avx2", 63), ("vnni", 127)):
        try:
            multiply(tried, tried, kernel)
        except RuntimeError:
            continue
        yield kernel, most


def whole(rows, columns, most):
    """Whole numbers, the largest of each row `most`, so that rounding changes none of them."""
    numbers = torch.randint(-most, most + 1, (rows, columns)).float()
    numbers[:, 0] = most
    return numbers


@check
def whole_numbers_give_exact_int8_products():
    for kernel, most in int8_kernels():
        for rows in (1, 2, 3, 4, 5, 7, 13, 14, 15, 29, 40):
            for depth, columns in ((1, 1), (3, 5), (4, 32), (17, 33), (64, 100), (130, 257)):
                x, weight = whole(rows, depth, 127), whole(columns, depth, most)
                got = multiply(x, weight, kernel)
                exact = x.double() @ weight.double().t()
                # Only the scales, which are 1 up to the last bit, are not exact.
                error = (got.double() - exact).abs().max()
                assert error <= 1e-6 * max(1, exact.abs().max()), (kernel, rows, depth, columns, error)


@check
def the_largest_sums_do_not_overflow():
    for kernel, most in int8_kernels():
        for sign in (1, -1):
            x, weight = torch.full((3, 4096), 127.0), torch.full((40, 4096), sign * float(most))
            got = multiply(x, weight, kernel)
            assert torch.allclose(got, torch.full_like(got, sign * 127.0 * most * 4096), rtol=1e-6)


@check
def int8_products_are_near_those_of_float32():
    for kernel, most in int8_kernels():
        x, weight = rand(33, 512, grad=False).float(), rand(300, 512, grad=False).float()
        exact = x.double() @ weight.double().t()
        error = (multiply(x, weight, kernel).double() - exact).abs().max() / exact.abs().max()
        assert error <= (0.02 if most == 127 else 0.03), (kernel, error)


@check
def a_row_has_the_same_bits_in_any_product():
    x, weight = rand(40, 96, grad=False).float(), rand(130, 96, grad=False).float()
    for kernel in [name for name, _ in int8_kernels()] + ["bfloat16"]:
        together = multiply(x, weight, kernel)
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for rows in (1, 2, 5, 14, 15, 33):
                assert torch.equal(multiply(x[:rows], weight, kernel), together[:rows]), (kernel, rows)
            reversed_rows = multiply(x.flip(0), weight, kernel)
            assert torch.equal(reversed_rows.flip(0), together), kernel
        torch.set_num_threads(2)


@check
def bfloat16_weights_give_the_products_of_their_float32_values():
    x, weight = rand(19, 200, grad=False).float(), rand(77, 200, grad=False).float()
    rounded = weight.bfloat16().float()
    got = multiply(x, weight, "bfloat16")
    exact = x.double() @ rounded.double().t()
    assert (got.double() - exact).abs().max() <= 1e-5 * exact.abs().max()


@check
def rows_of_zeros_and_of_no_numbers():
    weight = rand(20, 48, grad=False).float()
    weight[3] = 0
    x = rand(4, 48, grad=False).float()
    x[1] = 0
    x[2, 5] = torch.nan
    x[3, 7] = torch.inf
    for kernel in [name for name, _ in int8_kernels()]:
        got = multiply(x, weight, kernel)
        assert (got[1] == 0).all() and (got[0, 3] == 0).all()
        assert got[2].isnan().all() and not got[3].isfinite().any()
        assert got[0].isfinite().all()
