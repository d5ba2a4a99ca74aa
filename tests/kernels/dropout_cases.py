"""Dropout, alone and added to a residual, and its mask."""
import itertools

import torch

from support import TYPES, case, device_ops, rand

SIZES = [(3, 5), (4, 128), (2, 3, 130), (7,), (0, 4)]


def add(types, size, p):
    input_type, output_type = types
    x = rand(*size, dtype=input_type)
    residual = rand(*size, dtype=output_type)
    if x.numel() > 1:
        x.view(-1)[1] = float("inf")  # dropped, it must become 0, not NaN
    name = f"{input_type} to {output_type}, {size}, p {p}"
    case(f"dropout {name}", lambda: device_ops.dropout(x, p, 5, None, None, output_type))
    case(f"dropout with a residual {name}",
         lambda: device_ops.dropout(x, p, 0, torch.tensor([5]), residual, output_type))
    case(f"dropout mask {name}", lambda: device_ops.dropout_mask(x, p, 5, None))


for types, size, p in itertools.product(
        TYPES + [(torch.bfloat16, torch.float32), (torch.float16, torch.float32)], SIZES, (0.3, 1.0)):
    add(types, size, p)
