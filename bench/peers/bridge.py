"""The cost of one small op from Python.

python bridge.py CALLS REPEATS THREADS
"""

import sys
import time

import torch

from shared import answer


def measure(call, a, b, calls, repeats):
    """Seconds a call; the first measurement warms up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        for _ in range(calls):
            result = call(a, b)
            del result
        times.append((time.perf_counter() - start) / calls)
    return times[1:]


if __name__ == "__main__":
    calls, repeats, threads = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    answer(seconds={"Python torch.add": measure(torch.add, a, b, calls, repeats)})
