"""The cases of parity: every op with every option, dropout apart."""

import itertools

import torch

from parity_case import HALF, Case, rand

WHOLE = (torch.float64, torch.float32)


def norm_cases():
    # A width that no vector has, and the model's own.
    for rows, width in (((5, 7), 33), ((700,), 512)):
        x, scale, shift = rand(*rows, width, seed=1), rand(width, seed=2), rand(width, seed=3)
        for sample, outside in itertools.product((False, True), repeat=2):
            options = dict(sample_std=sample, eps_outside=outside)
            words = f"width {width}" + ", sample std" * sample + ", eps outside" * outside
            yield Case(
                "layer_norm",
                words,
                [x, scale, shift],
                lambda f, x, a, b, o=options: f(x, a, b, 1e-5, **o),
            )
        yield Case("rms_norm", f"width {width}", [x, scale], lambda f, x, a: f(x, a, 1e-5))


def masks(batch, queries, keys):
    padding = torch.ones(batch, 1, 1, keys, dtype=torch.bool)
    for row in range(batch):
        padding[row, ..., keys - row :] = False
    causal = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril()
    empty = padding & causal
    empty[0, :, 1] = False
    return dict(none=None, padding=padding, causal=causal, empty_row=empty)


def attention_cases():
    for batch, heads, queries, keys, width in ((3, 2, 9, 9, 16), (2, 8, 33, 33, 64), (3, None, 5, 5, 8)):
        lead = (batch,) if heads is None else (batch, heads)
        qkv = [rand(*lead, n, width, seed=i) for i, n in enumerate((queries, keys, keys))]
        for name, mask in masks(batch, queries, keys).items():
            if mask is not None and heads is None:
                mask = mask[:, 0]
            for policy in ("uniform", "zero") if name == "empty_row" else ("uniform",):
                for weights in (False, True):
                    yield Case(
                        "attention",
                        f"[{', '.join(map(str, lead))}, {queries}, {width}], mask {name}, empty rows "
                        f"{policy}" + ", weights" * weights,
                        qkv,
                        lambda f, q, k, v, m=None, p=policy, w=weights: f(
                            q, k, v, m, 0.0, empty_rows=p, need_weights=w
                        ),
                        [] if mask is None else [mask],
                    )


def packed_attention_cases():
    lengths = {
        "equal lengths": ([7, 7], [7, 7]),
        "other lengths": ([5, 1, 40, 12], [5, 1, 40, 12]),
        "other keys, one without": ([5, 3, 20], [9, 0, 31]),
    }
    for (name, (queries, keys)), heads in itertools.product(lengths.items(), (1, 8)):
        width = 64 * heads
        offsets = [torch.tensor([0, *itertools.accumulate(n)]) for n in (queries, keys)]
        inputs = [rand(sum(n), width, seed=i) for i, n in enumerate((queries, keys, keys))]
        for causal in (False, True) if queries == keys else (False,):
            yield Case(
                "packed_attention",
                f"{name}, {heads} heads" + ", causal" * causal,
                inputs,
                # The offsets are on the CPU whatever the device.
                lambda f, q, k, v, o=offsets, h=heads, c=causal: f(q, k, v, *o, h, c, 0.0),
            )


def feed_forward_cases():
    for rows, d, hidden in (((7,), 16, 24), ((300,), 256, 1024)):
        x, w1, w2 = rand(*rows, d, seed=1), rand(hidden, d, seed=2), rand(d, hidden, seed=3)
        b1, b2, w3, b3 = (rand(*s, seed=i) for i, s in enumerate(((hidden,), (d,), (hidden, d), (hidden,))))
        w1, w2, w3 = w1 / d**0.5, w2 / hidden**0.5, w3 / d**0.5
        for activation in ("relu", "gelu"):
            words = f"{activation}, {d} to {hidden}"

            def call(f, x, w1, b1, w2, b2, a=activation, **options):
                return f(x, w1, b1, w2, b2, 0.0, activation=a, **options)

            yield Case("feed_forward", words, [x, w1, b1, w2, b2], call)
            yield Case(
                "feed_forward",
                words + ", no biases",
                [x, w1, w2],
                lambda f, x, w1, w2, call=call: call(f, x, w1, None, w2, None),
            )
        yield Case(
            "feed_forward",
            f"swiglu, {d} to {hidden}",
            [x, w1, b1, w2, b2, w3, b3],
            lambda f, x, w1, b1, w2, b2, w3, b3: f(
                x, w1, b1, w2, b2, 0.0, activation="swiglu", w_3=w3, b_3=b3
            ),
        )
        yield Case(
            "feed_forward",
            f"relu, {d} to {hidden}",
            [x, w1, b1, w2, b2],
            lambda f, *t: f(*t, 0.0, **rounded_products(f)),
            dtypes=(torch.float32,),
            products=True,
        )


def rounded_products(function):
    """The option for it; references compute as their inputs are."""
    return {} if "reference" in str(function) else dict(products="bfloat16")


def linear_cases():
    for rows, d, outputs in ((7, 16, 24), (300, 256, 1000)):
        x, w, b = rand(rows, d, seed=1), rand(outputs, d, seed=2) / d**0.5, rand(outputs, seed=3)
        words = f"{d} to {outputs}"
        yield Case("linear", words, [x, w, b], lambda f, x, w, b: f(x, w, b))
        yield Case("linear", words + ", no bias", [x, w], lambda f, x, w: f(x, w, None))
        yield Case(
            "linear",
            words,
            [x, w, b],
            lambda f, x, w, b: f(x, w, b, **rounded_products(f)),
            dtypes=(torch.float32,),
            products=True,
        )


def linear_cross_entropy_cases():
    # More rows than a chunk has, and classes that no multiple of 64 are.
    for rows, d, classes in ((7, 16, 33), (600, 256, 2003)):
        x, w, b = rand(rows, d, seed=1), rand(classes, d, seed=2) / d**0.5, rand(classes, seed=3)
        target = torch.randint(1, classes, (rows,), generator=torch.Generator().manual_seed(4))
        target[::5] = 0
        for smoothing, bias, scale in itertools.product((0.0, 0.1), (True, False), (1.0, 0.25)):
            yield Case(
                "linear_cross_entropy",
                f"{rows} rows, {classes} classes, smoothing {smoothing}, scale {scale}"
                + ", no bias" * (not bias),
                [x, w, b] if bias else [x, w],
                lambda f, x, w, *rest, s=smoothing, c=scale: f(
                    x, w, rest[0] if len(rest) == 2 else None, rest[-1], 0, s, c
                ),
                [target],
            )
        yield Case(
            "linear_cross_entropy",
            f"{rows} rows, {classes} classes, smoothing 0.1, scale 1.0",
            [x, w, b],
            lambda f, x, w, b, t: f(x, w, b, t, 0, 0.1, 1.0, **rounded_products(f)),
            [target],
            dtypes=(torch.float32,),
            products=True,
        )


def dropout_cases():
    x, residual = rand(50, 33, seed=1), rand(50, 33, seed=2)
    yield Case("dropout", "p 0", [x], lambda f, x: f(x, 0.0))
    yield Case("dropout", "p 1", [x], lambda f, x: f(x, 1.0))
    for p in (0.0, 1.0):
        yield Case("dropout", f"p {p:.0f}, residual", [x, residual], lambda f, x, r, p=p: f(x, p, residual=r))


def all_cases():
    for make in (
        norm_cases,
        attention_cases,
        packed_attention_cases,
        feed_forward_cases,
        linear_cases,
        linear_cross_entropy_cases,
        dropout_cases,
    ):
        yield from make()
