"""The model of seed 001 as someone who knows PyTorch writes it: the same parameters under the same names, and
the same results.

Chosen by measurement on two cores with AVX-512, size small, dropout 0.1. The norm's kernel makes a step a tenth
to a third faster, the dropout here another 6 %. Not faster, and so not here: scaled_dot_product_attention, which
on the CPU falls back to the plain formula when the weights have dropout; a mask that is added in the product
of the scores; THP_MEM_ALLOC_ENABLE.
"""

import torch
from torch import nn

from shared import reference


class LayerNorm(nn.Module):
    """The seed's norm in one kernel: population standard deviation, eps inside the root."""

    def __init__(self, norm):
        super().__init__()
        self.a_2, self.b_2, self.eps = norm.a_2, norm.b_2, norm.eps

    def forward(self, x):
        return nn.functional.layer_norm(x, self.a_2.shape, self.a_2, self.b_2, self.eps)


class Dropout(nn.Module):
    """On the CPU PyTorch draws uniform numbers faster than the Bernoulli numbers of its own dropout."""

    def __init__(self, dropout):
        super().__init__()
        self.p = dropout.p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        return x * torch.rand_like(x).ge_(self.p).mul_(1 / (1 - self.p))


class Attention(nn.Module):
    """The seed's attention, which does not keep its weights."""

    def __init__(self, attention):
        super().__init__()
        self.h, self.linears, self.dropout = attention.h, attention.linears, attention.dropout

    def split(self, x):
        """[B, S, D] -> [B, H, S, D/H]"""
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask):
        w_q, w_k, w_v, w_o = self.linears
        q, k, v = self.split(w_q(query)), self.split(w_k(key)), self.split(w_v(value))
        heads, _ = reference.attention(q, k, v, mask.unsqueeze(1), self.dropout)
        return w_o(heads.transpose(1, 2).flatten(2))


def tune(module, own_dropout=True):
    """Replaces the modules of a model of the reference; parameters and their names stay.

    own_dropout: False for torch.compile, which fuses PyTorch's own.
    """
    replacements = {reference.LayerNorm: LayerNorm, reference.MultiHeadedAttention: Attention}
    if own_dropout:
        replacements[nn.Dropout] = Dropout
    for name, child in module.named_children():
        if type(child) in replacements:
            child = replacements[type(child)](child)
            setattr(module, name, child)
        tune(child, own_dropout)
    return module
