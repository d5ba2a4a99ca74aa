"""Writes promotion.json: the dtypes that PyTorch gives results. Run with torch 2.13."""

import json
import pathlib

import torch

NAMES = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool".split()
NUMBERS = {"integer": 2, "fraction": 2.5, "boolean": True}


def short(dtype):
    return str(dtype).removeprefix("torch.")


def dtype_of(run):
    """The dtype of what `run` gives; null where PyTorch refuses."""
    try:
        return short(run().dtype)
    except (RuntimeError, TypeError):
        return None


vector = {name: torch.ones(1, dtype=getattr(torch, name)) for name in NAMES}
single = {name: torch.ones((), dtype=getattr(torch, name)) for name in NAMES}
yes = torch.tensor([True])


def pairs(run):
    return {a: {b: run(a, b) for b in NAMES} for a in NAMES}


def each(run):
    return {a: dtype_of(lambda: run(vector[a])) for a in NAMES}


table = {
    "torch": torch.__version__.split("+")[0],
    "promoteTypes": pairs(lambda a, b: short(torch.promote_types(vector[a].dtype, vector[b].dtype))),
    "canCast": pairs(lambda a, b: torch.can_cast(vector[a].dtype, vector[b].dtype)),
    "add": pairs(lambda a, b: dtype_of(lambda: vector[a] + vector[b])),
    "addZeroDim": pairs(lambda a, b: dtype_of(lambda: vector[a] + single[b])),
    "div": pairs(lambda a, b: dtype_of(lambda: vector[a] / vector[b])),
    "cat": pairs(lambda a, b: dtype_of(lambda: torch.cat([vector[a], vector[b]]))),
    "where": pairs(lambda a, b: dtype_of(lambda: torch.where(yes, vector[a], vector[b]))),
    "mulNumber": {
        a: {kind: dtype_of(lambda: vector[a] * value) for kind, value in NUMBERS.items()}
        for a in NAMES
    },
    "sum": each(lambda x: x.sum()),
    "mean": each(lambda x: x.mean()),
    "exp": each(lambda x: x.exp()),
    "cumprod": each(lambda x: x.cumprod(0)),
}

lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items()]
target = pathlib.Path(__file__).with_name("promotion.json")
target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
