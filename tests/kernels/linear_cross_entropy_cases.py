"""The last linear layer and the cross-entropy, with gradients: what is computed by CUDA's products is
done by the CPU's here, the kernel over the rows of logits is the emulated one."""
import itertools

import torch

from support import case, device_ops, expect, rand

HALF = (torch.bfloat16, torch.float16)
# input, weight and bias: all of one type, and master weights
TYPES = [(torch.float32, torch.float32), (torch.float64, torch.float64), (torch.bfloat16, torch.bfloat16),
         (torch.float16, torch.float16), (torch.bfloat16, torch.float32), (torch.float16, torch.float32)]
# rows, features, classes; one chunk and several, a multiple of 64 classes and others
SIZES = [(5, 3, 7), (9, 8, 64), (40, 4, 101), (3, 5, 2500), (0, 3, 5), (2, 2, 1)]
OWN, BFLOAT16, BFLOAT16_RESULTS = 0, 1, 2
CROSS_ENTROPY, KL_DIVERGENCE = 0, 1
IGNORED = 2


def arguments(types, size, change=None):
    rows, features, classes = size
    x = rand(rows, features, dtype=types[0])
    weight = rand(classes, features, dtype=types[1])
    bias = rand(classes, dtype=types[1])
    target = torch.arange(rows) * 5 % classes
    if change:
        change(x, weight, bias)
    return x, weight, bias, target


def add(name, tensors, smoothing=0.0, products=OWN, narrow=False, form=CROSS_ENTROPY):
    # Slopes of logits are rounded before they are multiplied, on the CPU only with `products`.
    tolerance = 2 ** -7 if narrow else None
    x, weight, bias, target = tensors

    def run(bias, *wanted):
        return device_ops.linear_cross_entropy(x, weight, bias, target, IGNORED, smoothing, form, 0.25,
                                               products, *wanted)

    case(f"loss and gradients {name}", lambda: run(bias, True, True, True), tolerance)
    case(f"loss without bias {name}", lambda: run(None, True, True, False)[:5], tolerance)
    case(f"loss alone {name}", lambda: run(bias, False, False, False)[:3], tolerance)
    case(f"loss and one gradient {name}",
         lambda: (*run(bias, False, False, True)[:3], run(bias, False, False, True)[5],
                  run(bias, False, True, False)[4], run(bias, True, False, False)[3]), tolerance)


for types, size, smoothing in itertools.product(TYPES, SIZES, (0.0, 0.1)):
    add(f"{types[0]} by {types[1]}, {size}, smoothing {smoothing}", arguments(types, size), smoothing,
        narrow=types[0] in HALF)
for types, size in itertools.product(TYPES, SIZES):
    # The op refuses fewer classes.
    if size[2] >= 3:
        add(f"{types[0]} by {types[1]}, {size}, divergence", arguments(types, size), 0.1, narrow=types[0] in HALF,
            form=KL_DIVERGENCE)
for size in SIZES:
    for products in (BFLOAT16, BFLOAT16_RESULTS):
        add(f"rounded products {products}, {size}", arguments(TYPES[0], size), 0.1, products, narrow=True)


def equal_scores(x, weight, bias):
    weight[1:] = weight[0]
    bias.zero_()


def with_a_nan(x, weight, bias):
    x[1, 0] = float("nan")


def with_an_infinity(x, weight, bias):
    bias[3] = float("inf")


def with_closed_classes(x, weight, bias):
    bias[1:3] = -float("inf")


for change in (equal_scores, with_a_nan, with_an_infinity, with_closed_classes):
    add(change.__name__, arguments(TYPES[0], (9, 4, 70), change))


def add_wrong_targets():
    x, weight, bias, _ = arguments(TYPES[0], (4, 3, 7))
    run = lambda target: device_ops.linear_cross_entropy(  # noqa: E731
        x, weight, bias, torch.tensor(target), IGNORED, 0.1, CROSS_ENTROPY, 1.0, OWN, True, True, True)
    _, losses, correct, grad_input, grad_weight, grad_bias = run([1, IGNORED, IGNORED, 5])
    nan = float("nan")
    expect("a target that is no class gives NaN and has no part in the gradients",
           (torch.tensor(nan), torch.tensor([losses[0], nan, nan, losses[3]]), correct,
            grad_input, grad_weight, grad_bias),
           lambda: run([1, 7, -1, 5]))


add_wrong_targets()
