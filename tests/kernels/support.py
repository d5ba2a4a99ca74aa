"""What the checks of emulated CUDA kernels share.

A device op (native/core/device/device_op.h) is called with the CPU's own kernel, then the library with the
emulated CUDA kernels is opened, which takes the CPU's place, and the op is called again with the
same arguments.
"""
import os
import sys

import torch

torch.set_num_threads(1)

LIBRARIES = sys.argv[1] if len(sys.argv) > 1 else "build/Release"
torch.ops.load_library(os.path.join(LIBRARIES, "libtorchformer_core.so"))
device_ops = torch.ops.torchformer_device

# Against the largest expected magnitude (at least 1): a few roundings of each type.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 2 ** -7,
             torch.float16: 2 ** -9, torch.bool: 0, torch.int64: 0}
# What a kernel reads and writes: the same type, or float32 and a half type.
TYPES = [(torch.float32, torch.float32), (torch.float64, torch.float64),
         (torch.bfloat16, torch.bfloat16), (torch.float16, torch.float16),
         (torch.float32, torch.bfloat16), (torch.float32, torch.float16)]
cases = []
expectations = []
generator = torch.Generator().manual_seed(3)


def rand(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def case(name, function, tolerance=None):
    """`function` calls device ops with arguments made before, and returns a tensor or several; it
    must leave its arguments as they are. `tolerance`: of all its results, where that is not
    TOLERANCE's."""
    cases.append((name, function, tolerance))


def expect(name, expected, function):
    """For what the CPU's kernel is never asked: `function` gives these tensors on CUDA alone."""
    expectations.append((name, expected, function))


def results():
    found = []
    for _, function, _ in cases:
        tensors = function()
        found.append([t for t in (tensors if isinstance(tensors, (tuple, list)) else (tensors,))])
    return found


def difference(expected, got, tolerance=None):
    """None, or what is wrong with `got`."""
    if (expected is None) != (got is None):
        return f"expected {expected}, got {got}"
    if expected is None:
        return None
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return (f"expected {tuple(expected.shape)} {expected.dtype}, "
                f"got {tuple(got.shape)} {got.dtype}")
    if expected.numel() == 0:
        return None
    if not torch.equal(torch.isnan(expected), torch.isnan(got)):
        return "NaN in other places"
    # Infinities have to be where they are expected; what is equal needs no measuring.
    differs = ~torch.isnan(expected) & (expected != got)
    if not differs.any():
        return None
    finite = expected[torch.isfinite(expected)].double().abs()
    scale = max(1.0, finite.max().item()) if finite.numel() else 1.0
    error = (expected[differs].double() - got[differs].double()).abs().max().item() / scale
    limit = TOLERANCE[expected.dtype]
    if tolerance is not None and limit > 0:
        limit = max(limit, tolerance)
    return None if error <= limit else f"error {error:.3g} beyond {limit:g}"
