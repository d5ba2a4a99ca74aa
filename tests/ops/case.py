"""A case: an op on the device, compared with its reference in float64 on the CPU."""

from dataclasses import dataclass, field

import torch

# Of outputs, relative to the largest expected value; of gradients, relative to the largest gradient of
# the case. Half types round every result to 8 or 11 bits, and products of rounded values add to that.
TOLERANCES = {
    torch.float64: (1e-12, 1e-11),
    torch.float32: (1e-5, 1e-4),
    torch.bfloat16: (2e-2, 3e-2),
    torch.float16: (3e-3, 5e-3),
}
HALF = (torch.bfloat16, torch.float16)


def rand(*shape, seed):
    """float64 [shape], normal"""
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@dataclass
class Case:
    op: str
    options: str
    """In words, for the report."""
    inputs: list
    """Tensors in float64, converted to the dtype that is checked; gradients are taken of all."""
    call: object
    """(op, inputs) -> output or outputs"""
    constants: list = field(default_factory=list)
    """More arguments: tensors that are ids or masks, moved to the device, given after the inputs."""
    dtypes: tuple = tuple(TOLERANCES)
    own_masks_on_gpu: bool = False
    """Whether the GPU's kernels drop by random numbers of their own: then dropout_masks.py checks them."""
    rounds: bool = False
    """Whether float32 numbers are rounded to bfloat16 on the way, so that its tolerance holds."""


def results(case, function, dtype, device):
    """Outputs and gradients on the CPU."""
    # All dtypes get the same numbers: those that the checked dtype can represent.
    inputs = [t.to(dtype[0]).to(dtype[1]).to(device).requires_grad_() for t in case.inputs]
    constants = [t.to(device) for t in case.constants]
    outputs = case.call(function, *inputs, *constants)
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    outputs = [o for o in outputs if o is not None]
    differentiable = [o for o in outputs if o.requires_grad]
    upstream = [rand(*o.shape, seed=100 + i) for i, o in enumerate(differentiable)]
    numbers = torch.bfloat16 if case.rounds else dtype[0]
    upstream = [u.to(numbers).to(o.dtype).to(device) for u, o in zip(upstream, differentiable)]
    gradients = torch.autograd.grad(differentiable, inputs, upstream, allow_unused=True)
    gradients = [torch.zeros_like(t) if g is None else g for g, t in zip(gradients, inputs)]
    return [o.detach().cpu() for o in outputs], [g.cpu() for g in gradients]


def is_comparable(case, dtype, device):
    """float64 has no such kernels on a GPU, and drops as everywhere."""
    return device == "cpu" or not case.own_masks_on_gpu or dtype == torch.float64


def largest(tensors):
    return max((t.abs().max().item() for t in tensors if t.numel() > 0), default=0.0)


def error(got, expected, scale):
    """Largest difference over the scale; infinite where something is not finite."""
    if got.shape != expected.shape:
        raise AssertionError(f"shape {list(got.shape)}, expected {list(expected.shape)}")
    if got.numel() == 0:
        return 0.0
    if not torch.isfinite(got).all():
        return float("inf")
    return (got.double() - expected.double()).abs().max().item() / (scale or 1.0)


def errors(found, expected):
    """Largest error of floating outputs, of integers (as a count), and of gradients."""
    (outputs, gradients), (wanted, wanted_gradients) = found, expected
    floating = [(g, e) for g, e in zip(outputs, wanted) if e.is_floating_point()]
    whole = [(g, e) for g, e in zip(outputs, wanted) if not e.is_floating_point()]
    scale = largest(wanted_gradients)
    return (
        max((error(g, e, largest([e])) for g, e in floating), default=0.0),
        max(((g - e).abs().max().item() for g, e in whole), default=0),
        max((error(g, e, scale) for g, e in zip(gradients, wanted_gradients)), default=0.0),
    )


def check(case, ops, dtype, device):
    """The record of one case in one dtype."""
    name = str(dtype).removeprefix("torch.") + " to bfloat16" * case.rounds
    record = dict(op=case.op, options=case.options, dtype=name)
    try:
        op, reference = (getattr(ops, case.op + end) for end in ("", "_reference"))
        expected = results(case, reference, (dtype, torch.float64), "cpu")
        value, whole, gradient = errors(results(case, op, (dtype, dtype), device), expected)
        tolerance, gradient_tolerance = TOLERANCES[torch.bfloat16 if case.rounds else dtype]
        # Rounded logits may have a different maximum.
        rounded = dtype in HALF or case.rounds
        allowed = max(2, case.inputs[0].shape[0] // 20) if rounded else 0
        record.update(
            error=value,
            gradientError=gradient,
            tolerance=tolerance,
            gradientTolerance=gradient_tolerance,
            passed=value <= tolerance and gradient <= gradient_tolerance and whole <= allowed,
        )
        # Also the error of the CPU's own kernels; in half types they take too long.
        if device != "cpu" and dtype == torch.float32:
            on_cpu = errors(results(case, op, (dtype, dtype), "cpu"), expected)
            record.update(cpuError=on_cpu[0], cpuGradientError=on_cpu[2])
        if whole > 0:
            record["wholeNumbersDiffer"] = whole
    except Exception as fault:  # The next case may still pass.
        record.update(passed=False, fault=f"{type(fault).__name__}: {fault}"[:500])
    return record
