"""Checks of torchformer::attention."""
import itertools

import torch

from support import TOLERANCE, check, close, compare, generator, ops, rand, refuses


def masks(batch, heads, queries, keys):
    """None, and masks of every accepted shape; one in which a row is empty."""
    lead = (batch,) if heads is None else (batch, heads)
    yield None
    for sizes in itertools.product(*[{1, n} for n in lead], {1, queries}, {1, keys}):
        yield torch.rand(*sizes, generator=generator(5)) > 0.4
    full = torch.ones(*lead, queries, keys, dtype=torch.bool)
    full[..., 0, :] = False
    full[..., -1, 0] = False
    yield full


def qkv(batch, heads, queries, keys, dk, dv, dtype=torch.float64):
    lead = (batch,) if heads is None else (batch, heads)
    return [rand(*lead, queries, dk, dtype=dtype, seed=11), rand(*lead, keys, dk, dtype=dtype, seed=12),
            rand(*lead, keys, dv, dtype=dtype, seed=13)]


@check
def attention_with_every_key_masked():
    q = torch.zeros(1, 1, 1, 1, requires_grad=True)
    k = torch.zeros(1, 1, 3, 1, requires_grad=True)
    v = torch.tensor([[[[1.0], [2], [3]]]], requires_grad=True)
    mask = torch.zeros(1, 1, 1, 3, dtype=torch.bool)
    for f in (ops.attention, ops.attention_reference):
        output, weights = f(q, k, v, mask, need_weights=True)
        assert output.item() == 2.0
        close(weights, torch.full((1, 1, 1, 3), 1 / 3), 1e-7)
        output, weights = f(q, k, v, mask, empty_rows="zero", need_weights=True)
        assert output.item() == 0.0 and weights.abs().sum() == 0
    for policy, slope in (("uniform", 1 / 3), ("zero", 0.0)):
        output, _ = ops.attention(q, k, v, mask, empty_rows=policy)
        gq, gk, gv = torch.autograd.grad(output.sum(), (q, k, v))
        assert gq.abs().sum() == 0 and gk.abs().sum() == 0
        close(gv, torch.full((1, 1, 3, 1), slope), 1e-7)


@check
def an_empty_row_changes_no_other_row():
    for dtype, policy in itertools.product(TOLERANCE, ("uniform", "zero")):
        q, k, v = qkv(3, 2, 4, 5, 6, 6, dtype)
        mask = torch.rand(3, 1, 1, 5, generator=generator(4)) > 0.5
        mask[0] = False
        mask[1:, ..., 0] = True
        output, _ = ops.attention(q, k, v, mask, empty_rows=policy)
        gradients = torch.autograd.grad(output.sum(), (q, k, v))
        assert all(torch.isfinite(t).all() for t in (output, *gradients))
        alone, _ = ops.attention(q[1:], k[1:], v[1:], mask[1:], empty_rows=policy)
        close(output[1:], alone, TOLERANCE[dtype])


@check
def a_batch_row_equals_the_row_alone():
    for batch in (1, 2, 3):
        q, k, v = qkv(batch, 2, 3, 3, 4, 4, torch.float32)
        mask = torch.ones(batch, 1, 3, 3, dtype=torch.bool)
        for b in range(batch):
            mask[b, ..., (2 - 2 * b) % 3] = False
        output, _ = ops.attention(q, k, v, mask)
        for b in range(batch):
            alone, _ = ops.attention(q[b:b + 1], k[b:b + 1], v[b:b + 1], mask[b:b + 1])
            close(output[b:b + 1], alone, 1e-6, f"batch {batch} row {b}")


@check
def attention_equals_its_reference():
    for dtype, tolerance in TOLERANCE.items():
        for heads, policy, p in itertools.product((None, 2), ("uniform", "zero"), (0.0, 0.3, 1.0)):
            inputs = qkv(3, heads, 4, 5, 6, 3, dtype)
            for mask in masks(3, heads, 4, 5):
                both = [lambda q, k, v, f=f: f(q, k, v, mask, p, empty_rows=policy, need_weights=True,
                                               generator=generator())
                        for f in (ops.attention, ops.attention_reference)]
                compare(*both, inputs, tolerance)


@check
def attention_equals_pytorch():
    for dtype, tolerance in TOLERANCE.items():
        inputs = qkv(2, 4, 9, 17, 8, 8, dtype)
        mask = torch.rand(2, 1, 9, 17, generator=generator(1)) > 0.3
        compare(lambda q, k, v: ops.attention(q, k, v, mask)[0],
                lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, mask),
                inputs, tolerance)


@check
def attention_passes_finite_differences():
    for heads, policy, p, weights in itertools.product((None, 2), ("uniform", "zero"), (0.0, 0.4), (False, True)):
        inputs = qkv(2, heads, 3, 4, 3, 2)
        for mask in masks(2, heads, 3, 4):
            def function(q, k, v):
                output = ops.attention(q, k, v, mask, p, empty_rows=policy, need_weights=weights,
                                       generator=generator())
                return output if weights else output[0]
            assert torch.autograd.gradcheck(function, inputs)
    for wanted in itertools.product((False, True), repeat=3):
        if any(wanted):
            some = [t.detach().requires_grad_(w) for t, w in zip(inputs, wanted)]
            assert torch.autograd.gradcheck(lambda *t: ops.attention(*t)[0], some)


@check
def attention_can_be_differentiated_twice():
    mask = torch.ones(2, 3, 3, dtype=torch.bool).tril()
    mask[1, 1] = False
    for policy, p in itertools.product(("uniform", "zero"), (0.0, 0.4)):
        def function(q, k, v):
            return ops.attention(q, k, v, mask, p, empty_rows=policy, need_weights=True, generator=generator())
        assert torch.autograd.gradgradcheck(function, qkv(2, None, 3, 3, 2, 2))
        same = rand(2, 3, 2)
        assert torch.autograd.gradgradcheck(lambda x: function(x, x, x), (same,))


@check
def attention_of_the_weights_alone_has_a_gradient():
    q, k, v = qkv(2, 2, 3, 4, 3, 2)
    _, weights = ops.attention(q, k, v, need_weights=True)
    gq, gk, gv = torch.autograd.grad(weights.pow(2).sum(), (q, k, v), allow_unused=True)
    assert gq.abs().sum() > 0 and gk.abs().sum() > 0
    assert gv is None or gv.abs().sum() == 0


@check
def asking_for_weights_changes_no_bit():
    for dtype, p, grad in itertools.product(TOLERANCE, (0.0, 0.3), (False, True)):
        inputs = [t.detach().requires_grad_(grad) for t in qkv(2, 2, 5, 7, 8, 8, dtype)]
        without = ops.attention(*inputs, None, p, generator=generator())
        asked = ops.attention(*inputs, None, p, generator=generator(), need_weights=True)
        assert without[1] is None and asked[1].shape == (2, 2, 5, 7)
        assert torch.equal(without[0], asked[0])


@check
def changing_the_returned_weights_is_noticed_in_backward():
    q, k, v = qkv(1, 1, 2, 3, 4, 4)
    output, weights = ops.attention(q, k, v, need_weights=True)
    with torch.no_grad():
        weights.zero_()
    try:
        output.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error), error
        return
    raise AssertionError("a wrong gradient came back in silence")


@check
def attention_with_nothing_to_do():
    for batch, heads, queries, keys, dv in ((0, 2, 3, 4, 2), (2, 0, 3, 4, 2), (2, 2, 0, 4, 2), (2, 2, 3, 0, 2),
                                            (2, 2, 3, 4, 0), (0, None, 0, 0, 0)):
        for policy, p, use in itertools.product(("uniform", "zero"), (0.0, 0.5), (False, True)):
            inputs = qkv(batch, heads, queries, keys, 3, dv, torch.float32)
            lead = (batch,) if heads is None else (batch, heads)
            mask = torch.zeros(*lead, queries, keys, dtype=torch.bool) if use else None
            both = [lambda q, k, v, f=f: f(q, k, v, mask, p, empty_rows=policy, need_weights=True,
                                           generator=generator())
                    for f in (ops.attention, ops.attention_reference)]
            compare(*both, inputs, 1e-6)


@check
def attention_takes_any_strides():
    inputs = [rand(2, 5, 3, 4, dtype=torch.float32, seed=s) for s in (1, 2, 3)]
    mask = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    compare(lambda *t: ops.attention(*[x.transpose(1, 2) for x in t], mask)[0],
            lambda *t: ops.attention(*[x.transpose(1, 2).contiguous() for x in t], mask)[0], inputs, 0)
    q, k, v = [x.transpose(1, 2) for x in inputs]
    output, weights = ops.attention(q, k, v, mask.expand(2, 3, 5, 5), need_weights=True)
    upstream = torch.ones(1).expand(output.shape)
    torch.autograd.backward([output, weights], [upstream, torch.ones(1).expand(weights.shape)])
    assert all(torch.isfinite(t.grad).all() for t in inputs)


@check
def attention_of_every_length_and_width():
    sizes = [(n, (7 * n) % 41 + 1, n * 2 % 80 + 1, n) for n in range(1, 41)]
    sizes += [(17, 33, width, 81 - width) for width in range(1, 81)] + [(65, 130, 32, 32), (200, 70, 20, 8)]
    for queries, keys, dk, dv in sizes:
        inputs = qkv(2, 2, queries, keys, dk, dv, torch.float32)
        full = torch.rand(2, 1, queries, keys, generator=generator(3)) > 0.4
        full[0, :, 0] = False
        padding = torch.arange(keys).expand(2, 1, 1, keys) < torch.tensor([keys // 2, keys]).view(2, 1, 1, 1)
        for mask, policy in ((full, "uniform"), (full, "zero"), (padding, "uniform"), (padding, "zero"), (None, "zero")):
            both = [lambda q, k, v, f=f: f(q, k, v, mask, 0.3, empty_rows=policy, need_weights=mask is full,
                                           generator=generator())
                    for f in (ops.attention, ops.attention_reference)]
            compare(*both, inputs, TOLERANCE[torch.float32])


def attention_results(inputs, mask, p, upstream):
    inputs = [t.detach().requires_grad_() for t in inputs]
    output, _ = ops.attention(*inputs, mask, p, generator=generator())
    return [output.detach(), *torch.autograd.grad(output, inputs, upstream)]


@check
def attention_has_the_same_bits_for_every_number_of_threads():
    inputs = qkv(6, 4, 37, 37, 32, 32, torch.float32)
    upstream = rand(6, 4, 37, 37 - 5, dtype=torch.float32, grad=False)
    for mask, p in itertools.product((None, torch.rand(6, 1, 37, 37, generator=generator(2)) > 0.3), (0.0, 0.3)):
        expected = attention_results(inputs, mask, p, upstream)
        for threads in (2, 3, 8):
            torch.set_num_threads(threads)
            try:
                found = attention_results(inputs, mask, p, upstream)
            finally:
                torch.set_num_threads(1)
            assert all(torch.equal(a, b) for a, b in zip(found, expected)), f"{threads} threads, p {p}"


@check
def attention_of_a_batch_row_has_the_same_bits_alone_and_without_its_padding():
    inputs = qkv(3, 2, 20, 20, 32, 32, torch.float32)
    upstream = rand(3, 2, 20, 32, dtype=torch.float32, grad=False)
    lengths = [20, 3, 11]
    mask = (torch.arange(20) < torch.tensor(lengths).view(3, 1))[:, None, None]
    together = attention_results(inputs, mask, 0.0, upstream)
    for b, length in enumerate(lengths):
        q, k, v = (t[b : b + 1] for t in inputs)
        for keys, m in ((20, mask[b : b + 1]), (length, None)):
            alone = attention_results((q, k[:, :, :keys], v[:, :, :keys]), m, 0.0, upstream[b : b + 1])
            for a, expected in zip(alone[:2], together[:2]):
                assert torch.equal(a[0], expected[b])
            for a, expected in zip(alone[2:], together[2:]):
                assert torch.equal(a[0], expected[b, :, :keys])
                assert expected[b, :, length:].abs().sum() == 0


@check
def attention_passes_on_what_is_not_finite():
    for number, which, dtype in itertools.product((float("nan"), float("inf")), range(3), (torch.float32, torch.float64)):
        inputs = [t.detach() for t in qkv(2, 2, 20, 20, 16, 16, dtype)]
        upstream = rand(2, 2, 20, 16, dtype=dtype, grad=False)
        expected = attention_results(inputs, None, 0.0, upstream)
        inputs[which][1, 0, 7, 3] = number
        found = attention_results(inputs, None, 0.0, upstream)
        for a, b in zip(found, expected):
            assert torch.equal(a[0], b[0]) and torch.equal(a[1, 1], b[1, 1]), "it left its head"
        reference, _ = ops.attention_reference(*inputs)
        assert torch.equal(found[0].isfinite(), reference.isfinite()) and not found[0].isfinite().all()


@check
def attention_refuses_bad_arguments():
    q, k, v = (t.detach() for t in qkv(2, 3, 4, 5, 6, 7))
    m = lambda *s, dtype=torch.bool: torch.ones(s, dtype=dtype)
    for f in (ops.attention, ops.attention_reference):
        refuses("ERR_SHAPE", "[B, Sq, Dk]", f, q[0, 0], k[0, 0], v[0, 0])
        refuses("ERR_SHAPE", "[B, Sq, Dk]", f, q[None], k[None], v[None])
        refuses("ERR_SHAPE", "at least one feature", f, q[..., :0], k[..., :0], v)
        refuses("ERR_SHAPE", "key must be like query", f, q, k[..., :5], v)
        refuses("ERR_SHAPE", "key must be like query", f, q, k[:1], v[:1])
        refuses("ERR_SHAPE", "key must be like query", f, q, k[0], v)
        refuses("ERR_SHAPE", "value must be like key", f, q, k, v[..., :4, :])
        refuses("ERR_SHAPE", "value must be like key", f, q, k, v[:, :2])
        for shape in ((4, 5), (2, 4, 5), (2, 1, 4, 4), (2, 2, 4, 5), (1, 2, 3, 4, 5), (5,), ()):
            refuses("ERR_SHAPE", "does not fit scores of [2, 3, 4, 5]", f, q, k, v, m(*shape))
        for dtype in (torch.uint8, torch.int64, torch.float32):
            refuses("ERR_DTYPE", "mask must be bool", f, q, k, v, m(1, 1, 4, 5, dtype=dtype))
        refuses("ERR_DEVICE", "mask", f, q, k, v, m(1, 1, 4, 5).to("meta"))
        refuses("ERR_DTYPE", "key", f, q, k.float(), v)
        refuses("ERR_DTYPE", "query must be float16", f, q.int(), k, v)
        refuses("ERR_DEVICE", "value", f, q, k, v.to("meta"))
        refuses("ERR_ARGUMENT", "empty_rows", f, q, k, v, empty_rows="nan")
        for p in (-0.1, 1.1, float("nan"), float("inf")):
            refuses("ERR_ARGUMENT", "dropout_p", f, q, k, v, None, p)
