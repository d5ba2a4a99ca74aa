"""A peer that takes steps when it is told to, so that all participants can be measured in turn.

    python participant.py --job job.json --variant seed|tuned|tuned-fp32|compiled

Prints a line of JSON when it is ready. Then each line of standard input, {"first": 0, "count": 10}, is
answered with the figures of steps on those batches. It ends with its standard input.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

import torch  # noqa: E402

from shared import answer, read_job  # noqa: E402
from train import Training, read_batches, timed_steps, variants  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--variant", required=True, choices=variants)
    arguments = parser.parse_args()
    job = read_job(arguments.job)
    on_gpu = job["device"] != "cpu"
    training = Training(job, arguments.variant)
    batches = read_batches(job)
    if on_gpu:
        batches = [batch.each(torch.Tensor.pin_memory) for batch in batches]
    answer(ready=True)
    for line in sys.stdin:
        request = json.loads(line)
        chosen = batches[request["first"] : request["first"] + request["count"]]
        figures = timed_steps(training, chosen)
        if on_gpu:
            figures["peakDevice"] = torch.cuda.max_memory_allocated()
        answer(**figures)


if __name__ == "__main__":
    main()
