"""Parameters after every step of PyTorch's optimizers, with gradients given in advance."""

import torch

from recorder import DTYPES, Draw

STEPS = 5
SHAPES = {
    "matrix": (5, 3),
    "wide": (2, 40),
    "stack": (2, 3, 4),
    "vector": (6,),
    "number": (),
    "still": (3, 4),
}
NO_DECAY = ["vector", "number"]
RUNS = [
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.02, "betas": [0.9, 0.98], "eps": 1e-9, "weight_decay": 0.1}),
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.3, "beta2_decay": -0.5, "eps": [1e-15, 1e-3], "d": 2.0, "weight_decay": 0.1},
    ),
]


def draw_gradient(draw, name, shape, step):
    """Sizes between 1 and 1e-9, as in training; rows of zeros; nothing but zeros for `still`."""
    gradient = draw.normal(*shape) * 10.0 ** -(3 * (step % 4))
    if name == "still":
        return gradient * 0
    if name == "wide":
        gradient[1] *= 1e-4
    if name == "matrix":
        gradient[step % 5] = 0
    return gradient


def optimizer_runs():
    draw = Draw(seed=22, dtype=torch.float64)
    initial = {name: 0.3 * draw.normal(*shape) for name, shape in SHAPES.items()}
    gradients = [
        {name: draw_gradient(draw, name, shape, step) for name, shape in SHAPES.items()}
        for step in range(STEPS)
    ]
    tensors = {f"initial/{name}": tensor for name, tensor in initial.items()}
    for step, given in enumerate(gradients):
        tensors |= {f"gradient{step}/{name}": tensor for name, tensor in given.items()}
    runs = []
    for optimizer_name, settings in RUNS:
        for dtype in DTYPES:
            key = f"run{len(runs)}"
            parameters = {
                name: tensor.to(DTYPES[dtype]).clone().requires_grad_()
                for name, tensor in initial.items()
            }
            groups = [
                {"params": [p for name, p in parameters.items() if name not in NO_DECAY]},
                {"params": [parameters[name] for name in NO_DECAY], "weight_decay": 0.0},
            ]
            given = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in settings.items()
            }
            optimizer = getattr(torch.optim, optimizer_name)(groups, **given, foreach=False)
            for step, values in enumerate(gradients):
                for name, parameter in parameters.items():
                    parameter.grad = values[name].to(parameter.dtype)
                optimizer.step()
                tensors |= {
                    f"{key}/step{step}/{name}": p.detach().clone() for name, p in parameters.items()
                }
            runs.append(
                {"key": key, "optimizer": optimizer_name, "settings": settings, "dtype": dtype}
            )
    return {"steps": STEPS, "names": list(SHAPES), "noDecay": NO_DECAY, "runs": runs}, tensors
