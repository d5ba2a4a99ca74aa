"""Writes fixtures/: what the reference computes, for the TypeScript tests to compare with.

    python make_fixtures.py          write the folder
    python make_fixtures.py --check  make everything again and compare it with the folder

Every value is drawn from a seeded generator, so a second run on the same machine gives the same
bytes; another CPU may round the last bits differently, which is why --check has a tolerance.

index.json lists the cases, the safetensors files hold the numbers. One module case:

    title, module       what it shows, and the class or function of reference.py
    options             constructor arguments under the post's names
    dtype               of parameters, inputs and outputs
    state               key prefix of the parameters: `<state>/a_2`; null where there are none
    arguments           the inputs in the order of the call: `<key>/input/<name>`; null for no mask
    outputs             `<key>/output/<name>`
    upstream            outputs whose gradient is given: `<key>/upstream/<name>`
    inputGradients      inputs whose gradient is expected: `<key>/gradient/input/<name>`
                        (and `<key>/gradient/parameter/<name>` for every parameter)

The groups under `exact` are like it, but each case serves several types (exact_recorder.py): inputs,
given gradients and parameters are stored as bfloat16 and are the same numbers in every type; outputs and
gradients are float64. In place of dtype there are

    dtypes              the types to run it in
    attempt             which draw it is
    bfloat16            how far PyTorch comes in it: output, gradient; and the limit for torchformer
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import bfloat16_cases
import finetuning_cases
import initial_cases
import model_cases
import module_cases
import optimizer_cases
import option_cases
import schedule_cases
import seed000_cases
import seed002_cases
import smoothing_cases
import training_cases
from exact_recorder import ExactRecorder
from recorder import Recorder

HERE = Path(__file__).parent
FOLDER = HERE / "fixtures"


def make(folder, committed=None):
    """committed: the index whose draws of the exact cases are made again."""
    index = {"torch": torch.__version__.split("+")[0]}
    files = {}

    modules = Recorder()
    module_cases.record(modules)
    model_cases.record(modules)
    index["modules"] = modules.cases
    files["modules"] = modules.tensors

    index["exact"] = {}
    for name, cases, kind in (
        ("seed000", seed000_cases, ExactRecorder),
        ("seed002", seed002_cases, ExactRecorder),
        ("options", option_cases, ExactRecorder),
        ("bfloat16", bfloat16_cases, bfloat16_cases.Chosen),
    ):
        known = committed and [case["attempt"] for case in committed["exact"][name]]
        exact = kind(known)
        cases.record(exact)
        index["exact"][name] = exact.cases
        files[name] = exact.tensors

    finetuning = Recorder()
    finetuning_cases.record(finetuning)
    averages, tensors = finetuning_cases.averages()
    index["finetuning"] = {"modules": finetuning.cases, "averages": averages}
    files["finetuning"] = finetuning.tensors | tensors

    index["initial"], files["initial"] = initial_cases.initial_states()
    index["positions"], files["positions"] = module_cases.position_tables()
    index["makeModel"], files["makeModel"] = model_cases.initial_model()
    index["training"], files["training"] = training_cases.training_runs()
    index["greedy"], files["greedy"] = training_cases.greedy_answers()

    index["smoothing"], files["smoothing"] = smoothing_cases.smoothed_losses()
    index["schedules"] = schedule_cases.schedules()
    index["optimizers"], files["optimizers"] = optimizer_cases.optimizer_runs()

    folder.mkdir(exist_ok=True)
    for name, tensors in files.items():
        tensors = {key: tensor.detach().contiguous().clone() for key, tensor in tensors.items()}
        file = folder / f"{name}.safetensors"
        save_file(tensors, file, metadata={"format": "pt"})
        file.chmod(0o644)
    text = json.dumps(index, indent=1, ensure_ascii=False)
    (folder / "index.json").write_text(text + "\n", encoding="utf-8")
    return sorted(files)


def largest_difference(a, b):
    if a.keys() != b.keys():
        raise SystemExit(f"other keys: {sorted(a.keys() ^ b.keys())[:5]}")
    worst = (0.0, "nothing")
    for key in a:
        if a[key].shape != b[key].shape or a[key].dtype != b[key].dtype:
            raise SystemExit(
                f"{key}: {a[key].dtype}{a[key].shape} and {b[key].dtype}{b[key].shape}"
            )
        scale = max(1.0, a[key].double().abs().max().item())
        difference = (a[key].double() - b[key].double()).abs().max().item() / scale
        worst = max(worst, (difference, key))
    return worst


def check():
    with tempfile.TemporaryDirectory() as temporary:
        index = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
        for name in make(Path(temporary), index):
            committed = load_file(FOLDER / f"{name}.safetensors")
            difference, key = largest_difference(
                committed, load_file(f"{temporary}/{name}.safetensors")
            )
            print(
                f"{name:10} {len(committed):5} tensors, largest difference {difference:.1e} ({key})"
            )
            if difference > 1e-5:
                sys.exit(f"{name}: the committed fixtures are not what the reference computes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    torch.set_num_threads(1)
    if parser.parse_args().check:
        check()
    else:
        make(FOLDER)
        size = sum(file.stat().st_size for file in FOLDER.iterdir())
        print(f"{FOLDER}: {size / 1e6:.2f} MB")
