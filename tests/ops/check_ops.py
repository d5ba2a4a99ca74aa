"""Every native op against its reference in float64: values and gradients, in every dtype it has.

    python tests/ops/check_ops.py --libraries build/Release --kernels cpu|emulated|cuda
        [--records file.jsonl]

One table of cases (cases.py) for the kernels of the CPU, for the CUDA kernels that run on the CPU
under the emulator (native/cuda/host), and for a GPU. Prints the cases that fail and, last,
`N passed, N failed`; the exit code is 1 if one failed. With --records each case is written to the file as
a line of JSON instead, the last line printed is JSON too, and cases that fail are the reader's concern.
"""

import argparse
import json
import os
import sys
import warnings

import torch

from library import exact, load, op_names
from adam_rows_steps import adam_records
from case import check, is_comparable
from cases import all_cases
from dropout_masks import dropout_records


def records(ops, device):
    for case in all_cases():
        for dtype in case.dtypes:
            if is_comparable(case, dtype, device):
                yield check(case, ops, dtype, device)
    yield from dropout_records(ops, device)
    yield from adam_records(ops, device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--kernels", required=True, choices=["cpu", "emulated", "cuda"])
    parser.add_argument("--records")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    ops = load(arguments.libraries, arguments.kernels)
    exact()
    # The emulator runs one thread after the other; more of them only spin.
    if arguments.kernels == "emulated":
        torch.set_num_threads(1)
    seen, count, failed = set(), 0, 0
    with open(arguments.records or os.devnull, "w") as file:

        def note(record):
            nonlocal count, failed
            file.write(json.dumps(record) + "\n")
            file.flush()
            count, failed = count + 1, failed + (not record["passed"])
            if not record["passed"] and not arguments.records:
                print("FAIL", json.dumps(record), flush=True)

        for record in records(ops, "cuda" if arguments.kernels == "cuda" else "cpu"):
            note(record)
            seen.add(record["op"])
        for op in set(op_names()) - seen:
            note(dict(op=op, options="", dtype="", passed=False, fault="no case checks this op"))
    if arguments.records:
        print(json.dumps(dict(cases=count, failed=failed, ops=len(seen))))
        return 0
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
