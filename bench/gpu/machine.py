"""Prints one line of JSON: the PyTorch of this Python, its folder, and the GPU that it can use."""

import json
import platform
import subprocess
from pathlib import Path

import torch


def driver():
    """The version of NVIDIA's driver; None if nvidia-smi does not report it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None


def gpu():
    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(0)
    return dict(
        name=properties.name,
        capability=f"{properties.major}.{properties.minor}",
        memoryBytes=properties.total_memory,
        driver=driver(),
    )


print(
    json.dumps(
        dict(
            python=platform.python_version(),
            torch=torch.__version__,
            cuda=torch.version.cuda,
            folder=str(Path(torch.__file__).parent),
            gpu=gpu(),
        )
    )
)
