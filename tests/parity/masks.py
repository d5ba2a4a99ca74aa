"""Sizes and masks that the cases share, and how a case says that it has none."""

import torch

import reference as r

D_MODEL, D_FF, H, N = 8, 12, 2, 2


def bools(rows):
    return torch.tensor(rows, dtype=torch.bool)


# Two sentences of four places; the second has two tokens and two places of padding.
PADDING = bools([[[1, 1, 1, 1]], [[1, 1, 0, 0]]])
CAUSAL = bools([[1, 0, 0], [1, 1, 0], [1, 1, 1]])
CAUSAL_4 = r.subsequent_mask(4)[0]
PADDED_CAUSAL_4 = PADDING & CAUSAL_4


def given(name, value):
    """[name], or [None] where the call gets nothing."""
    return [name if value is not None else None]


def present(**values):
    return {name: value for name, value in values.items() if value is not None}
