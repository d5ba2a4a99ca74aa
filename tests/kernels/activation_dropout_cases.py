"""Biases, dropout, activation and gate between the linear layers of a feed-forward network."""
import itertools

import torch

from support import case, device_ops, rand

TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
SIZES = [(3, 5), (4, 128), (2, 516), (7, 1), (0, 4)]
ACTIVATIONS = {"relu": 0, "gelu": 1, "swiglu": 2}


def add(row_type, bias_type, size, activation, p):
    main = rand(*size, dtype=row_type)
    gate = rand(*size, dtype=row_type) if activation == "swiglu" else None
    bias, gate_bias = rand(size[1], dtype=bias_type), rand(size[1], dtype=bias_type)
    if main.numel() > 2:
        main.view(-1)[:2] = torch.tensor([float("nan"), float("inf")])

    def run(p, *places, biased=True):
        rows, opened = main.clone(), gate.clone() if gate is not None else None
        h = device_ops.activation_dropout_(rows, bias if biased else None, opened,
                                     gate_bias if biased and opened is not None else None,
                                     ACTIVATIONS[activation], p, *places)
        return rows, opened, h

    name = f"{activation} of {row_type}, biases {bias_type}, {size}, p {p}"
    case(f"activation dropout {name}", lambda: run(p, 5, None))
    case(f"activation dropout with its seed in a slot {name}", lambda: run(p, 0, torch.tensor([5])))
    case(f"activation dropout without biases or dropout {name}", lambda: run(0.0, 0, None, biased=False))


for row_type, size, activation, p in itertools.product(TYPES, SIZES, ACTIVATIONS, (0.3, 1.0)):
    add(row_type, row_type, size, activation, p)
    if row_type in (torch.bfloat16, torch.float16):
        add(row_type, torch.float32, size, activation, p)
