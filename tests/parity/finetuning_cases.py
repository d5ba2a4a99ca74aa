"""Low-rank updates, as modules; and moving averages of weights, step by step."""

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import reference as r
from masks import D_FF, D_MODEL, H, PADDING
from recorder import DTYPES, Draw
from reference_lora import LoraLinear, apply_lora


def record(recorder):
    for title, options in (
        ("adds alpha / rank times B A x", {"rank": 2, "alpha": 6.0}),
        ("takes a rank above the sizes", {"rank": 9, "alpha": 1.0}),
        ("works without a bias", {"rank": 2, "alpha": 2.0, "bias": False}),
    ):
        recorder.add(
            title,
            lambda: LoraLinear(8, 6, **options),
            lambda draw: {"x": draw.normal(2, 3, 8)},
            module="LoraLinear",
            options={"in_features": 8, "out_features": 6} | options,
        )

    settings = {"rank": 2, "alpha": 3.0}
    for names in (["w_1"], ["w_2"], ["w_1", "w_2"]):
        recorder.add(
            f"updates {' and '.join(names)}",
            lambda: apply_lora(
                r.PositionwiseFeedForward(D_MODEL, D_FF, dropout=0.0), names, **settings
            ),
            lambda draw: {"x": draw.normal(2, 3, D_MODEL)},
            module="PositionwiseFeedForward with LoRA",
            options={"d_model": D_MODEL, "d_ff": D_FF, "targets": names} | settings,
        )

    for numbers in ([0, 2], [0, 1, 2, 3]):
        names = [f"linears.{number}" for number in numbers]
        recorder.add(
            f"updates projections {numbers}",
            lambda: apply_lora(
                r.MultiHeadedAttention(H, D_MODEL, dropout=0.0), names, **settings
            ),
            lambda draw: {
                "query": draw.normal(2, 4, D_MODEL),
                "memory": draw.normal(2, 4, D_MODEL),
                "mask": PADDING,
            },
            arguments=["query", "memory", "memory", "mask"],
            module="MultiHeadedAttention with LoRA",
            options={"h": H, "d_model": D_MODEL, "targets": names} | settings,
        )


def warming(decay):
    """The decay of TensorFlow's ExponentialMovingAverage with num_updates, and of fairseq."""

    @torch.no_grad()
    def update(averages, weights, count):
        limit = (1 + int(count)) / (10 + int(count))
        torch._foreach_lerp_(averages, weights, 1 - min(decay, limit))

    return update


def averages():
    """Six updates of the average of a linear layer, whose weights are drawn for each."""
    cases, tensors = [], {}
    for decay, warmup in ((0.9, False), (0.999, True), (0.15, True)):
        for dtype in DTYPES:
            key = f"average{len(cases)}"
            draw = Draw(seed=41, dtype=DTYPES[dtype])
            model = torch.nn.Linear(3, 2).to(DTYPES[dtype])
            function = warming(decay) if warmup else get_ema_multi_avg_fn(decay)
            average = AveragedModel(model, multi_avg_fn=function)
            for step in range(6):
                draw.parameters_(model)
                average.update_parameters(model)
                for name, parameter in model.named_parameters():
                    tensors[f"{key}/weights{step}/{name}"] = parameter.clone()
                for name, parameter in average.module.named_parameters():
                    tensors[f"{key}/average{step}/{name}"] = parameter.clone()
            cases.append(
                {"key": key, "decay": decay, "warmup": warmup, "dtype": dtype, "steps": 6}
            )
    return cases, tensors
