"""Label smoothing in its two forms: losses of single targets, their sum, and its gradients."""

import torch

from recorder import DTYPES, Draw

PAD = 0
SIZES = {"rows": 9, "features": 6, "classes": 11}
SMOOTHINGS = [0.0, 0.1, 1.0]


def cross_entropies(logits, target, smoothing):
    return torch.nn.functional.cross_entropy(
        logits, target, ignore_index=PAD, label_smoothing=smoothing, reduction="none"
    )


def divergences(logits, target, smoothing):
    """KLDivLoss from the distribution of The Annotated Transformer: 1 - smoothing at the target, the
    rest shared by the words that are neither the target nor the padding, zeros for padding."""
    classes = logits.size(1)
    distribution = torch.full_like(logits, smoothing / (classes - 2))
    distribution.scatter_(1, target[:, None], 1.0 - smoothing)
    distribution[:, PAD] = 0
    distribution[target == PAD] = 0
    each = torch.nn.KLDivLoss(reduction="none")(logits.log_softmax(-1), distribution)
    return each.sum(-1)


def smoothed_losses():
    draw = Draw(seed=21, dtype=torch.float64)
    rows, features, classes = SIZES.values()
    given = {
        "input": draw.normal(rows, features),
        "weight": draw.normal(classes, features),
        "bias": draw.normal(classes),
    }
    target = draw.ids(classes, rows)
    target[[2, 7]] = PAD
    tensors = {f"given/{name}": tensor for name, tensor in given.items()} | {"target": target}
    cases = []
    for form, losses_of in (("crossEntropy", cross_entropies), ("klDivergence", divergences)):
        for smoothing in SMOOTHINGS:
            for dtype in DTYPES:
                leaves = {
                    name: tensor.to(DTYPES[dtype]).clone().requires_grad_()
                    for name, tensor in given.items()
                }
                logits = torch.nn.functional.linear(*leaves.values())
                losses = losses_of(logits, target, smoothing)
                losses.sum().backward()
                key = f"{form}/{smoothing}/{dtype}"
                tensors[f"{key}/losses"] = losses
                for name, leaf in leaves.items():
                    tensors[f"{key}/gradient/{name}"] = leaf.grad
                cases.append({"key": key, "form": form, "smoothing": smoothing, "dtype": dtype})
    return {"pad": PAD, "cases": cases}, tensors
