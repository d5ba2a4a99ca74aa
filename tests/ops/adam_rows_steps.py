"""Row-sparse Adam: several steps on the device, compared with the same in float64 on the CPU."""

import torch

from case import rand

ROWS, WIDTH, STEPS = 40, 48, 5
SETTINGS = dict(lr=1e-3, beta1=0.9, beta2=0.98, eps=1e-9)
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}


def trained(ops, dtype, numbers, device):
    """Parameter and both means after some steps, on the CPU. `numbers` is the dtype whose values the
    inputs have."""
    made = dict(dtype=dtype, device=device)
    parameter = rand(ROWS, WIDTH, seed=1).to(numbers).to(**made)
    means = [torch.zeros(ROWS, WIDTH, **made) for _ in range(2)]
    touched = torch.zeros(ROWS, dtype=torch.bool, device=device)
    for step in range(1, STEPS + 1):
        ids = torch.randint(0, ROWS // 2, (17,), generator=torch.Generator().manual_seed(step))
        values = rand(17, WIDTH, seed=step).to(numbers).to(**made)
        gradient = torch.sparse_coo_tensor(
            ids[None].to(device), values, (ROWS, WIDTH), check_invariants=False
        )
        with torch.no_grad():
            number = torch.tensor(float(step), device=device)
            ops.adam_rows_(parameter, gradient, *means, touched, number, **SETTINGS)
    return [t.cpu() for t in (parameter, *means)], touched.cpu()


def adam_records(ops, device):
    for dtype, tolerance in TOLERANCES.items():
        name = str(dtype).removeprefix("torch.")
        record = dict(op="adam_rows_", options=f"{STEPS} steps", dtype=name)
        try:
            expected, expected_touched = trained(ops, torch.float64, dtype, "cpu")
            found, touched = trained(ops, dtype, dtype, device)
            error = max(
                ((f.double() - e).abs().max() / e.abs().max()).item() for f, e in zip(found, expected)
            )
            same = torch.equal(touched, expected_touched)
            record.update(error=error, tolerance=tolerance, passed=error <= tolerance and same)
            if not same:
                record["fault"] = "other rows are marked as touched"
        except Exception as fault:  # The next one may still pass.
            record.update(passed=False, fault=f"{type(fault).__name__}: {fault}"[:500])
        yield record
