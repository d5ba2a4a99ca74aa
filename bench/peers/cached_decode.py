"""One decoding job in PyTorch with caches.

    python cached_decode.py --job job.json --precision float32|bfloat16
"""

import argparse

import torch

from cached_decoder import CachedDecoder
from cached_searches import beam_search, greedy
from decoding import measure_cases
from shared import answer, load_file, read_job


def run(job, precision):
    decoder = CachedDecoder(
        load_file(job["weights"]), job["model"], job["specialIds"], getattr(torch, precision)
    )

    def decode(sources, beam, max_length):
        if beam == 1:
            return greedy(decoder, sources, max_length)
        return beam_search(decoder, sources, beam, max_length)

    cases = measure_cases(job, decode)
    answer(cases=cases, version=f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--precision", required=True, choices=["float32", "bfloat16"])
    arguments = parser.parse_args()
    run(read_job(arguments.job), arguments.precision)
