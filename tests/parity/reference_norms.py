"""The two other layer norms a PyTorch user meets, beside the one in reference.py.

SampleLayerNorm        sample deviation (n - 1), eps added to it,       names k and b,     eps 1e-6
nn.LayerNorm (torch's) population deviation (n), eps inside the root, names weight, bias, eps 1e-5
"""

import torch
from torch import nn


class SampleLayerNorm(nn.Module):
    """Seed 000's norm: [..., d_model] -> [..., d_model]"""

    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.k = nn.Parameter(torch.ones(d_model))
        self.b = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, data):
        centred = data - data.mean(-1, keepdim=True)
        std = data.std(-1, correction=1, keepdim=True)
        return self.k * centred / (std + self.eps) + self.b


TorchLayerNorm = nn.LayerNorm
