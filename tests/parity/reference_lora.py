"""Low-rank updates of linear layers, from the paper (Hu et al. 2021, section 4.1).

h = W0 x + (alpha / r) B A x, with W0 (and the bias) frozen, A [r, in], B [out, r]. The names of the
matrices are those of the library peft: lora_A.weight, lora_B.weight.
"""

import math

import torch
from torch import nn


class LoraLinear(nn.Module):
    """x [..., in_features] -> [..., out_features]"""

    def __init__(self, in_features, out_features, rank, alpha, dropout=0.0, bias=True):
        super().__init__()
        base = nn.Linear(in_features, out_features, bias=bias)
        self.weight, self.bias = base.weight, base.bias
        for parameter in base.parameters():
            parameter.requires_grad = False
        self.lora_A = nn.Linear(in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, out_features, bias=False)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)
        self.dropout = nn.Dropout(dropout)
        self.scaling = alpha / rank

    def forward(self, x):
        frozen = nn.functional.linear(x, self.weight, self.bias)
        return frozen + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling


def apply_lora(module, names, rank, alpha):
    """Replaces these linear layers of a module, and freezes everything else."""
    for parameter in module.parameters():
        parameter.requires_grad = False
    for name in names:
        owner, _, own = name.rpartition(".")
        linear = module.get_submodule(name)
        bias = linear.bias is not None
        updated = LoraLinear(linear.in_features, linear.out_features, rank, alpha, bias=bias)
        with torch.no_grad():
            updated.weight.copy_(linear.weight)
            if bias:
                updated.bias.copy_(linear.bias)
        setattr(module.get_submodule(owner), own, updated)
    return module
