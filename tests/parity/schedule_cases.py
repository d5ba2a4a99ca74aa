"""Learning rates of PyTorch's schedulers. A scheduler counts the steps taken, so the rate listed for
step n is that of its state after n calls of `step()`."""

import torch
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

STEPS = [0, 1, 2, 5, 9, 10, 11, 17, 25, 39, 40]
RATE, WARMUP, END, LEAST = 0.02, 10, 40, 0.002
# LinearLR refuses a factor of 0; 1e-12 of a rate is nothing here.
NOTHING = 1e-12


def rates(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    scheduler = make(optimizer)
    found = []
    for _ in range(max(STEPS) + 1):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return [found[step] for step in STEPS]


def after_warmup(make):
    def sequential(optimizer):
        growth = LinearLR(optimizer, start_factor=NOTHING, total_iters=WARMUP)
        return SequentialLR(optimizer, [growth, make(optimizer)], milestones=[WARMUP])

    return sequential


def schedules():
    decay = END - WARMUP
    given = {"learningRate": RATE}
    ends = {**given, "warmup": WARMUP, "steps": END}
    cases = [
        ("warmup", {**given, "warmup": WARMUP}, after_warmup(lambda o: ConstantLR(o, 1.0))),
        # fairseq's inverse_sqrt, whose initial rate is 0.
        (
            "inverseSquareRoot",
            {**given, "warmup": WARMUP},
            lambda o: LambdaLR(o, lambda n: n / WARMUP if n < WARMUP else (WARMUP / n) ** 0.5),
        ),
        ("cosine", ends, after_warmup(lambda o: CosineAnnealingLR(o, decay))),
        ("cosine", {**ends, "min": LEAST}, after_warmup(lambda o: CosineAnnealingLR(o, decay, LEAST))),
        ("cosine", {**given, "steps": END}, lambda o: CosineAnnealingLR(o, END)),
        (
            "linearDecay",
            ends,
            after_warmup(lambda o: LinearLR(o, 1.0, NOTHING, total_iters=decay)),
        ),
        (
            "linearDecay",
            {**ends, "min": LEAST},
            after_warmup(lambda o: LinearLR(o, 1.0, LEAST / RATE, total_iters=decay)),
        ),
    ]
    return {
        "steps": STEPS,
        "cases": [
            {"schedule": name, "options": options, "rates": rates(make)}
            for name, options, make in cases
        ],
    }
