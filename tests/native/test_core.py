"""Checks of libtorchformer_core.so from Python: the ops against their references, against PyTorch
and against arithmetic done by hand; their backwards against finite differences; what they refuse.

    python tests/native/test_core.py path/to/libtorchformer_core.so [part of a name ...]

Needs torch of the version the library was built for. Prints one line a check and ends with
`N passed, N failed`; exit code 1 when one failed. The library can also come from the environment
variable TORCHFORMER_CORE_LIB.
"""
import sys
import traceback

from support import checks

import layer_norm_checks  # noqa: F401  (importing a file adds its checks)
import rms_norm_checks  # noqa: F401
import attention_checks  # noqa: F401
import packed_attention_checks  # noqa: F401
import feed_forward_checks  # noqa: F401
import feed_forward_activation_checks  # noqa: F401
import dropout_checks  # noqa: F401
import all_ops_checks  # noqa: F401
import gpu_shapes_checks  # noqa: F401
import linear_cross_entropy_checks  # noqa: F401
import narrow_product_checks  # noqa: F401
import product_checks  # noqa: F401


def main():
    parts = sys.argv[2:]
    chosen = [c for c in checks if not parts or any(part in c.__name__ for part in parts)]
    failed = 0
    for c in chosen:
        try:
            c()
            print("ok  ", c.__name__.replace("_", " "), flush=True)
        except Exception:
            failed += 1
            print("FAIL", c.__name__.replace("_", " "), flush=True)
            traceback.print_exc(limit=4)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
