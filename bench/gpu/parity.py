"""Compares every native op on a device with the CPU: values and gradients, in every supported dtype.

    python parity.py --libraries folder --device cuda|cpu --records file.jsonl

Writes one line of JSON per case to the file while running, and prints one with the counts. With the
device cpu, the fused ops are compared with their references, for rehearsals.
"""

import argparse
import json
import time
import warnings

import torch

from ops_library import exact, load, op_names
from parity_adam import adam_records
from parity_case import check, is_comparable
from parity_cases import all_cases
from parity_dropout import dropout_records


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
    parser.add_argument("--device", required=True, choices=["cuda", "cpu"])
    parser.add_argument("--records", required=True)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    ops = load(arguments.libraries, arguments.device)
    exact()
    start = time.perf_counter()
    seen, count, failed = set(), 0, 0
    with open(arguments.records, "w") as file:

        def note(record):
            nonlocal count, failed
            file.write(json.dumps(record) + "\n")
            file.flush()
            count, failed = count + 1, failed + (not record["passed"])

        for record in records(ops, arguments.device):
            note(record)
            seen.add(record["op"])
        for op in set(op_names()) - seen:
            note(dict(op=op, options="", dtype="", passed=False, fault="no case checks this op"))
    seconds = time.perf_counter() - start
    print(json.dumps(dict(cases=count, failed=failed, ops=len(seen), seconds=seconds)))


if __name__ == "__main__":
    main()
