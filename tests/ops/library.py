"""The native ops in PyTorch, with the kernels that are checked."""

from pathlib import Path

import torch


def load(folder, kernels):
    """torch.ops.torchformer, from the libraries in the folder. Kernels "emulated" take the place of the
    CPU's own."""
    torch.ops.load_library(str(Path(folder) / "libtorchformer_core.so"))
    cuda = Path(folder) / "libtorchformer_cuda.so"
    if kernels == "emulated":
        torch.ops.load_library(str(Path(folder) / "libtorchformer_cuda_emulated.so"))
    elif kernels == "cuda" and cuda.exists():
        torch.ops.load_library(str(cuda))
    return torch.ops.torchformer


def exact():
    """Computes float32 products in float32: PyTorch's default for matrices, but not for all ops."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def op_names():
    """All of our ops except the references."""
    names = {s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("torchformer::")}
    return sorted(n.split("::")[1] for n in names if not n.endswith("_reference"))
