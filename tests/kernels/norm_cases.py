"""Norms of all dialects, forward and backward, alone and behind a dropped residual sum."""
import itertools

import torch

from support import TYPES, case, device_ops, rand

# (rows, columns): a warp or a block a row, four numbers at once or one, above and below the limits
# up to which column sums are kept in registers.
SIZES = [(7, 5), (9, 64), (5, 100), (3, 516), (6, 1024), (3, 1025), (2, 2052), (1, 4100), (50, 36)]
# sample_std, eps_outside, centred
FORMS = [(False, False, True), (True, True, True), (False, False, False)]
EPS = 1e-3


def add(types, size, form):
    row_type, output_type = types
    statistics = torch.float64 if row_type == torch.float64 else torch.float32
    x = rand(*size, dtype=row_type)
    x[0] = 1.5  # equal values: no deviation
    scale = rand(size[1]).to(statistics)
    shift = rand(size[1]).to(statistics) if form[2] else None
    upstream = rand(*size, dtype=output_type)
    added = rand(*size, dtype=row_type)

    def norm():
        output, mean, std = device_ops.norm_forward(x, scale, shift, EPS, *form, output_type)
        return (output, mean, std,
                *device_ops.norm_backward(upstream, x, scale, mean, std, added, EPS, *form, True, True),
                *device_ops.norm_backward(upstream, x, scale, mean, std, None, EPS, *form, False, True)[1:],
                device_ops.norm_backward(upstream, x, scale, mean, std, None, EPS, *form, True, False)[0])

    dropped = x.to(output_type)

    def sum_norm():
        total, output, mean, std = device_ops.dropped_sum_norm_forward(
            dropped, 0.3, 77, None, added, scale, shift, EPS, *form, output_type)
        slot = torch.tensor([77])
        backward = device_ops.dropped_sum_norm_backward
        return (total, output, mean, std,
                *backward(upstream, added, total, 0.3, 0, slot, output_type, scale, mean, std, EPS, *form, True),
                *backward(upstream, None, total, 0.0, 0, None, row_type, scale, mean, std, EPS, *form, True))

    name = f"{row_type} to {output_type}, {size[0]} rows of {size[1]}, form {form}"
    case(f"norm {name}", norm)
    case(f"norm of a dropped sum {name}", sum_norm)


def add_overflow(dtype, columns, form):
    """Rows whose squares are beyond the dtype of the statistics, among others."""
    x = rand(4, columns, dtype=torch.float64)
    x[1] = (1e154 if dtype == torch.float64 else 1e19) * (1 + torch.arange(columns) % 4)
    x[3] = x[1] * 1e10
    x = x.to(dtype)
    statistics = torch.float64 if dtype == torch.float64 else torch.float32
    scale, none = rand(columns).to(statistics), torch.zeros_like(x)

    def run():
        output, mean, std = device_ops.norm_forward(x, scale, None, EPS, *form, dtype)
        backward = device_ops.norm_backward(x * 0 + 1, x, scale, mean, std, None, EPS, *form, True, True)
        summed = device_ops.dropped_sum_norm_forward(x, 0.0, 0, None, none, scale, None, EPS, *form, dtype)
        return output, std, *backward, *summed[1:2], summed[3]

    case(f"norm of rows whose squares overflow {dtype}, {columns} columns, form {form}", run)


for types, size, form in itertools.product(TYPES, SIZES, FORMS):
    add(types, size, form)
for dtype, columns, form in itertools.product(
        (torch.float32, torch.float64, torch.bfloat16), (4, 5, 64, 4100), FORMS):
    add_overflow(dtype, columns, form)
