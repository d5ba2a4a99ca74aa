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


def load_file(path):
    """name -> tensor of a safetensors file of ours; the peers need no package but PyTorch for it."""
    with open(path, "rb") as file:
        head = file.read(int.from_bytes(file.read(8), "little"))
        data = bytearray(file.read())
    dtypes = {"F32": torch.float32, "I64": torch.int64, "BOOL": torch.bool}
    tensors = {}
    for name, entry in json.loads(head).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = dtypes[entry["dtype"]]
        count = (end - begin) // dtype.itemsize
        flat = torch.frombuffer(data, dtype=dtype, count=count, offset=begin)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def answer(**figures):
    """The line that the bench reads; versions and peak memory are added."""
    figures["torch"] = torch.__version__
    figures["capability"] = torch.backends.cpu.get_cpu_capability()
    figures["peakRss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(figures), flush=True)
