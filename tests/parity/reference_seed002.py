"""The parts of seed 002 in PyTorch: attention, MultiHead, PositionEmbedding, FullyConnectedOutput.

Written from the post alone, never from the TypeScript. Classes and attributes carry the post's names,
so a state dict made here has the keys of the post's modules. The sizes, numbers in the post's code,
are arguments here; their defaults are its numbers.

Shapes: b sentences, S places, D width, H heads.

What the post decides, taken over as it stands
----------------------------------------------
 1.  A mask is TRUE where attention is blocked, and gets -inf there. It is required, has rank 4
     ([b, 1, S, S] in its remark) and is broadcast over the scores.
 2.  attention scales by the root of one head's width and merges the heads in its result. It returns
     the result alone, and there is no dropout on the weights.
 3.  MultiHead is its own sublayer, pre-norm: Q, K and V all pass through ONE LayerNorm (torch's own:
     population deviation, eps 1e-5 inside the root, `weight` and `bias`), K is projected first, then
     V, then Q, each by a Linear with bias; dropout 0.1 follows the output projection; the Q added
     back is the one before the norm. Memory, too, is normed here.
 4.  PositionEmbedding holds words and positions: buffer `pe` [1, 50, D] with column i of place p
     p / 10000^(i/D), the sine of it where i is even, the cosine where i is odd (no shared exponent in
     a pair); computed in float64 and rounded to float32. Embedding of 39 words, drawn a second time
     from normal(0, 0.1). No scaling, no dropout. The ids must have as many places as the table.
 5.  FullyConnectedOutput: x + dropout(linear(relu(linear(norm(x))))), hidden width 64, dropout 0.1
     after the second linear; the layers sit in a Sequential `fc` as 0 and 2.

What is decided here
--------------------
 a.  A row with every key blocked is NaN in the post. Here it is uniform over all keys and its scores
     get no gradient, as in the other two dialects.
 b.  Q may have another length than K and V.
 c.  A mask of rank 2 is [Sq, Sk]; one of rank 3 is batch-first. The post would read the latter as
     heads-first.
"""

import math

import torch
from torch import nn


def attention(Q, K, V, mask):
    """Q [b, H, Sq, D/H], K and V [b, H, Sk, D/H], mask true where blocked -> [b, Sq, D]"""
    score = torch.einsum("bhqd,bhkd->bhqk", Q, K) / Q.shape[-1] ** 0.5
    if mask.dim() == 3:
        mask = mask.unsqueeze(1)
    blocked = mask.bool().expand(score.shape)
    nothing_left = blocked.all(-1, keepdim=True)
    weights = score.masked_fill(blocked, -math.inf).masked_fill(nothing_left, 0.0).softmax(-1)
    return torch.matmul(weights, V).transpose(1, 2).flatten(2)


class MultiHead(nn.Module):
    """Q [b, Sq, D], K and V [b, Sk, D], mask true where blocked -> [b, Sq, D]"""

    def __init__(self, width=32, heads=4):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.split = (heads, width // heads)
        self.fc_Q = nn.Linear(width, width)
        self.fc_K = nn.Linear(width, width)
        self.fc_V = nn.Linear(width, width)
        self.out_fc = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def heads(self, projection, x):
        return projection(self.norm(x)).unflatten(-1, self.split).transpose(1, 2)

    def forward(self, Q, K, V, mask):
        merged = attention(
            self.heads(self.fc_Q, Q), self.heads(self.fc_K, K), self.heads(self.fc_V, V), mask
        )
        return Q + self.dropout(self.out_fc(merged))


def position_table(positions, width, dtype=torch.float32):
    """[positions, width], each value computed in float64"""

    def value(position, column):
        angle = position / 10000.0 ** (column / width)
        return math.cos(angle) if column % 2 else math.sin(angle)

    rows = [[value(position, column) for column in range(width)] for position in range(positions)]
    return torch.tensor(rows, dtype=torch.float64).to(dtype)


class PositionEmbedding(nn.Module):
    """ids [b, positions] -> [b, positions, D]"""

    def __init__(self, words=39, positions=50, width=32):
        super().__init__()
        self.register_buffer("pe", position_table(positions, width)[None])
        self.embed = nn.Embedding(words, width)
        nn.init.normal_(self.embed.weight, mean=0.0, std=0.1)

    def make_tables_(self, dtype):
        """The table as exact as `dtype` can hold it."""
        self.pe = position_table(*self.pe.shape[1:], dtype)[None]

    def forward(self, x):
        if x.shape[1] != self.pe.shape[1]:
            raise ValueError(f"{x.shape[1]} ids for {self.pe.shape[1]} positions")
        return self.embed(x) + self.pe


class FullyConnectedOutput(nn.Module):
    """[b, S, D] -> [b, S, D]"""

    def __init__(self, width=32, hidden=64):
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width), nn.Dropout(0.1)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.fc(self.norm(x))
