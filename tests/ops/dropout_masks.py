"""The masks of dropout in every op that has it. With ones and identity matrices the output is the mask,
and must do what a mask does."""

import torch

P = 0.3


def dropout(ops, made, generator):
    x = torch.ones(64, 64, **made)
    return lambda x: ops.dropout(x, P, generator=generator), x, 1.0


def dropout_with_residual(ops, made, generator):
    x = torch.ones(64, 64, **made)
    return (
        lambda x: ops.dropout(x, P, residual=torch.zeros_like(x), generator=generator),
        x,
        1.0,
    )


def feed_forward(ops, made, generator):
    one = torch.eye(64, **made)
    x = torch.ones(64, 64, **made)
    return lambda x: ops.feed_forward(x, one, None, one, None, P, generator=generator), x, 1.0


def attention(ops, made, generator):
    """Equal scores give equal weights; values that are the identity give the weights themselves."""
    zero = torch.zeros(1, 4, 64, 64, **made)
    v = torch.eye(64, **made).expand(1, 4, 64, 64).contiguous()
    return (
        lambda v: ops.attention(zero, zero, v, None, P, generator=generator)[0],
        v,
        1 / 64,
    )


def packed_attention(ops, made, generator):
    zero = torch.zeros(64, 64, **made)
    v = torch.eye(64, **made)
    offsets = torch.tensor([0, 64])
    return (
        lambda v: ops.packed_attention(
            zero, zero, v, offsets, offsets, 1, False, P, generator=generator
        ),
        v,
        1 / 64,
    )


def add_norm(ops, made, generator):
    x, scale = torch.ones(64, 64, **made), torch.ones(64, **made)
    return (
        lambda x: ops.add_norm(x, torch.zeros_like(x), scale, None, P, generator=generator)[0],
        x,
        1.0,
    )


def embed(ops, made, generator):
    x, ids = torch.ones(64, 64, **made), torch.arange(64, device=made["device"])
    return lambda x: ops.embed(x, ids, 1.0, None, None, P, generator=generator), x, 1.0


SUBJECTS = dict(
    add_norm=[add_norm],
    dropout=[dropout, dropout_with_residual],
    embed=[embed],
    feed_forward=[feed_forward],
    attention=[attention],
    packed_attention=[packed_attention],
)


def look(subject, ops, dtype, device):
    """@raises AssertionError with what is wrong"""
    made = dict(dtype=dtype, device=device)
    generator = torch.Generator()
    function, x, value = subject(ops, made, generator)

    def seed_all(seed):
        generator.manual_seed(seed)
        # The GPU's random state, which libtorch's attention kernels use.
        torch.manual_seed(seed)

    def drawn(seed):
        seed_all(seed)
        x.grad = None
        return function(x.detach().requires_grad_())

    first = drawn(1)
    mask = first.detach().double().cpu().flatten()
    kept = mask != 0
    share = 1 - kept.double().mean().item()
    # Five standard deviations of the share for this number of draws.
    bound = 5 * (P * (1 - P) / kept.numel()) ** 0.5
    assert abs(share - P) < bound, f"{share:.4f} are dropped, not {P} ± {bound:.4f}"
    survivor = value / (1 - P)
    off = (mask[kept] / survivor - 1).abs().max().item()
    assert off < 2e-2, f"what is kept is {off:.2g} from value / (1 - p)"
    assert torch.equal(drawn(1), first), "the same seed gives another mask"
    assert not torch.equal(drawn(2), first), "another seed gives the same mask"

    # The op is linear in x, so its output and its gradient of x use the same mask.
    seed_all(1)
    x = x.detach().requires_grad_()
    output = function(x)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(3)).to(output)
    (gradient,) = torch.autograd.grad(output, x, upstream)
    left = (upstream.double() * output.detach().double()).sum().item()
    right = (gradient.double() * x.detach().double()).sum().item()
    scale = (upstream.double() * output.detach().double()).abs().sum().item()
    assert abs(left - right) < 1e-2 * scale / output.numel() ** 0.5, "the gradient has another mask"


def dropout_records(ops, device):
    for op, subjects in SUBJECTS.items():
        for subject in subjects:
            for dtype in (torch.float32, torch.bfloat16, torch.float64):
                record = dict(
                    op=op,
                    options=f"{subject.__name__.replace('_', ' ')}, p {P}: its mask",
                    dtype=str(dtype).removeprefix("torch."),
                    passed=True,
                )
                try:
                    look(subject, ops, dtype, device)
                except Exception as fault:  # The next one may still pass.
                    record.update(passed=False, fault=f"{type(fault).__name__}: {fault}"[:500])
                yield record
