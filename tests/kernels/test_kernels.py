"""Checks of the CUDA kernels without a GPU: each is run by the emulator (native/cuda/host) and has to
give what the CPU's own kernel gives.

    python tests/kernels/test_kernels.py <folder with libtorchformer_core.so and
        libtorchformer_cuda_emulated.so> [part of a name ...]

Prints what fails and ends with `N passed, N failed`; exit code 1 when one failed.
"""
import os
import sys

import torch

from support import LIBRARIES, cases, difference, results

import dropout_cases  # noqa: F401  (importing a file adds its cases)
import norm_cases  # noqa: F401


def main():
    parts = sys.argv[2:]
    cases[:] = [c for c in cases if not parts or any(part in c[0] for part in parts)]
    expected = results()
    torch.ops.load_library(os.path.join(LIBRARIES, "libtorchformer_cuda_emulated.so"))
    failed = 0
    for (name, _), one, other in zip(cases, expected, results()):
        found = [difference(a, b) for a, b in zip(one, other)]
        wrong = [f"result {i}: {text}" for i, text in enumerate(found) if text]
        if len(one) != len(other) or wrong:
            failed += 1
            print("FAIL", name, "; ".join(wrong), flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
