"""Imports PyTorch and computes 1 + 1."""

import torch

print((torch.tensor(1) + 1).item())
