"""Checks of the CUDA kernels without a GPU: each is run by the emulator (native/cuda/host) and has to
give what the CPU's own kernel gives.

    python tests/kernels/test_kernels.py <folder with libtorchformer_core.so and
        libtorchformer_cuda_emulated.so> [part of a name ...]

Prints what fails and ends with `N passed, N failed`; exit code 1 when one failed.
"""
import os
import sys

import torch

from support import LIBRARIES, cases, difference, expectations, results

import activation_dropout_cases  # noqa: F401  (importing a file adds its cases)
import adam_rows_cases  # noqa: F401
import dropout_cases  # noqa: F401
import embed_cases  # noqa: F401
import linear_cross_entropy_cases  # noqa: F401
import norm_cases  # noqa: F401


def compare(name, expected, got, tolerance=None):
    """Whether `got` is as expected; prints what is not."""
    found = [difference(a, b, tolerance) for a, b in zip(expected, got)]
    wrong = [f"result {i}: {text}" for i, text in enumerate(found) if text]
    if len(expected) != len(got):
        wrong.append(f"{len(expected)} results expected, got {len(got)}")
    if wrong:
        print("FAIL", name, "; ".join(wrong), flush=True)
    return not wrong


def main():
    parts = sys.argv[2:]
    for chosen in (cases, expectations):
        chosen[:] = [c for c in chosen if not parts or any(part in c[0] for part in parts)]
    expected = results()
    torch.ops.load_library(os.path.join(LIBRARIES, "libtorchformer_cuda_emulated.so"))
    passed = [compare(name, one, other, tolerance)
              for (name, _, tolerance), one, other in zip(cases, expected, results())]
    passed += [compare(name, one, function()) for name, one, function in expectations]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
