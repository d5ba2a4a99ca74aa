"""Rows of an embedding table with positions and dropout, and their gradients."""
import itertools

import torch

from support import case, device_ops, expect, rand

TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
SIZES = [(3, 5), (4, 128), (2, 516), (7, 1), (0, 4)]
VOCABULARY, POSITIONS = 9, 6


def add(dtype, size, p):
    rows, columns = size
    weight = rand(VOCABULARY, columns, dtype=dtype)
    table = rand(POSITIONS, columns, dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    ids = torch.arange(rows) * 5 % VOCABULARY
    positions = torch.arange(rows) * 4 % POSITIONS
    upstream = rand(rows, columns, dtype=dtype)
    name = f"{dtype}, {size}, p {p}"
    case(f"embed {name}", lambda: device_ops.embed(weight, ids, 2.5, None, None, p, 5, None))
    case(f"embed with positions {name}",
         lambda: device_ops.embed(weight, ids, 2.5, table, positions, p, 0, torch.tensor([5])))
    case(f"embed backward {name}", lambda: (
        device_ops.embed_backward(upstream, ids, None, VOCABULARY, 0, 2.5, p, 5, None),
        device_ops.embed_backward(upstream, ids, positions, VOCABULARY, POSITIONS, 1.0, p, 5, None)))


for dtype, size, p in itertools.product(TYPES, SIZES, (0.0, 0.3, 1.0)):
    add(dtype, size, p)


def add_wrong_ids():
    weight, table, upstream = torch.ones(3, 2), torch.ones(2, 2), torch.ones(4, 2)
    ids, positions = torch.tensor([0, 3, -1, 2]), torch.tensor([0, 0, 0, 2])
    rows = torch.tensor([[2.0, 2.0]] + [[float("nan")] * 2] * 3)
    expect("a row that a table has not is NaN", (rows,),
           lambda: (device_ops.embed(weight, ids, 1.0, table, positions, 0.0, 0, None),))
    slopes = torch.tensor([[1.0, 1.0]] + [[0.0] * 2] * 3)
    expect("a row that a table has not has no gradient", (slopes,),
           lambda: (device_ops.embed_backward(upstream, ids, positions, 3, 2, 1.0, 0.0, 0, None),))


add_wrong_ids()
