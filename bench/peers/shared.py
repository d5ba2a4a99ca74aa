"""What the peers share: the reference model, arguments, the line of JSON."""

import json
import resource
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "parity"))

import reference  # noqa: E402,F401  the model of seed 001, eager


def read_job(path):
    job = json.loads(Path(path).read_text())
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job.get("seed", 1))
    return job


def answer(**figures):
    """The line that the bench reads; versions and peak memory are added."""
    figures["torch"] = torch.__version__
    figures["capability"] = torch.backends.cpu.get_cpu_capability()
    figures["peakRss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(figures), flush=True)
