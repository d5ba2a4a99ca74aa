"""What the checks of the native ops share: the library itself, seeded data, comparisons."""
import os
import sys

import torch

torch.set_num_threads(1)

LIBRARY = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("TORCHFORMER_CORE_LIB")
if not LIBRARY:
    sys.exit("give the path of libtorchformer_core.so")
LIBRARY = os.path.abspath(LIBRARY)
torch.ops.load_library(LIBRARY)
ops = torch.ops.torchformer

# Against the largest expected magnitude (at least 1): a few roundings of each type.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}
DIALECTS = [dict(sample_std=s, eps_outside=o) for s in (False, True) for o in (False, True)]
checks = []


def check(function):
    checks.append(function)
    return function


def generator(seed=7):
    return torch.Generator().manual_seed(seed)


def rand(*shape, dtype=torch.float64, grad=True, seed=None):
    made = torch.randn(shape, dtype=torch.float64, generator=generator(seed or sum(shape) + 1))
    return made.to(dtype).requires_grad_(grad)


def close(got, expected, tolerance, what=""):
    """Largest difference against the largest expected magnitude (at least 1)."""
    assert got.shape == expected.shape, f"{what}: {got.shape} against {expected.shape}"
    assert got.dtype == expected.dtype, f"{what}: {got.dtype} against {expected.dtype}"
    if got.numel() == 0:
        return
    assert torch.isfinite(got).all(), f"{what}: not finite"
    scale = max(1.0, expected.abs().max().item())
    error = (got.double() - expected.double()).abs().max().item() / scale
    assert error <= tolerance, f"{what}: error {error:.3g} beyond {tolerance:g}"


def compare(op, reference, inputs, tolerance):
    """Values and gradients of two functions of the same tensors."""
    results = []
    for function in (op, reference):
        fresh = [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]
        outputs = function(*fresh)
        outputs = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o is not None]
        loss = sum((o.double() * rand(*o.shape, grad=False, seed=3)).sum() for o in outputs)
        wanted = [t for t in fresh if t.requires_grad]
        results.append((outputs, torch.autograd.grad(loss, wanted)))
    for kind, got, expected in zip(("output", "gradient"), *results):
        assert len(got) == len(expected)
        for i, (a, b) in enumerate(zip(got, expected)):
            close(a, b, tolerance, f"{kind} {i}")


def refuses(code, part, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except RuntimeError as error:
        text = str(error)
        assert text.startswith(f"[{code}] "), f"expected {code}, got: {text[:200]}"
        assert part in text, f"expected '{part}' in: {text[:300]}"
        return
    raise AssertionError(f"accepted, expected {code}: {part}")
