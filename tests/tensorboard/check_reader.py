"""Reads event files of ours with TensorBoard's own reader: `npm run test:tensorboard`.

Needs requirements.txt installed, and the compiled package.
"""

import math
import subprocess
import tempfile
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

HERE = Path(__file__).parent


def read(folder):
    subprocess.run(["node", str(HERE / "write_run.mjs"), folder], check=True)
    files = sorted(Path(folder).iterdir())
    assert len(files) == 2 and all("tfevents" in file.name for file in files), files
    events = EventAccumulator(folder)
    events.Reload()
    return events


def steps(events, tag):
    return [(event.step, event.value) for event in events.Scalars(tag)]


def check(name, found, expected):
    assert found == expected, f"{name}: {found} instead of {expected}"
    print(f"ok: {name}")


with tempfile.TemporaryDirectory() as folder:
    events = read(folder)
    loss = steps(events, "train/loss")
    # Steps 5 and 6 of the killed part had a loss of 100.
    check("a step each, those after the checkpoint replaced", [step for step, _ in loss], [*range(1, 9)])
    check("a loss that is no number", math.isnan(loss[4][1]), True)
    check("losses", [value for step, value in loss if step in (1, 2, 4, 8)], [1, 0.5, 0.25, 0.125])
    check("learning rates", {value for _, value in steps(events, "train/learning_rate")}, {0.5})
    check("gradient norms", {value for _, value in steps(events, "train/gradient_norm")}, {2})
    # 100 tokens each half second, also in the first step after the resume.
    check("speed", {value for _, value in steps(events, "train/tokens_per_second")}, {200})
    check("validation losses", steps(events, "validation/loss"), [(4, 2), (8, 1)])
    check("accuracies", steps(events, "validation/accuracy"), [(4, 0.5), (8, 0.5)])
    check("BLEU where it was computed", steps(events, "validation/bleu"), [(4, 12.5)])
    check("chrF where it was computed", steps(events, "validation/chrf"), [(4, 12.5)])
    texts = {tag: events.Tensors(tag)[-1].tensor_proto.string_val[0].decode() for tag in events.Tags()["tensors"]}
    check("texts", sorted(texts), ["samples", "settings"])
    check("settings", '"lr": 0.5' in texts["settings"], True)
    check("samples without Markdown of their own", texts["samples"].split("\n")[2], "a &#124; &#60;b&#62; | &#42;x&#42; | ")
