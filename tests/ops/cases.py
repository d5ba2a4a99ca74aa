"""The cases: every op with every option.

Masks of dropout are the same on all devices for a seed, so results with dropout can be compared too.
"""

import itertools

import torch

from case import Case, rand

P = 0.3
"""Dropout, where there is some."""


def seeded():
    return torch.Generator().manual_seed(7)


def of_op(function, **options):
    """Options that make the op round; its reference, in float64, does not."""
    return {} if "reference" in str(function) else options


ROUNDING = dict(dtypes=(torch.float32,), rounds=True)
"""float32 in, with something rounded to bfloat16."""


def norm_cases():
    # A width that is not a multiple of any vector, and the model's own width.
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
        yield Case(
            "layer_norm",
            f"width {width}, bfloat16 results",
            [x, scale, shift],
            lambda f, x, a, b: f(x, a, b, 1e-5, **of_op(f, results="bfloat16")),
            **ROUNDING,
        )
        yield Case("rms_norm", f"width {width}", [x, scale], lambda f, x, a: f(x, a, 1e-5))
        yield Case(
            "rms_norm",
            f"width {width}, bfloat16 results",
            [x, scale],
            lambda f, x, a: f(x, a, 1e-5, **of_op(f, results="bfloat16")),
            **ROUNDING,
        )


def add_norm_cases():
    for rows, width in (((5, 7), 33), ((700,), 512)):
        x, residual = rand(*rows, width, seed=1), rand(*rows, width, seed=4)
        scale, shift = rand(width, seed=2), rand(width, seed=3)
        for p, sample, outside in itertools.product((0.0, P), (False, True), (False, True)):
            yield Case(
                "add_norm",
                f"width {width}, p {p}" + ", sample std" * sample + ", eps outside" * outside,
                [x, residual, scale, shift],
                lambda f, *t, p=p, s=sample, o=outside: f(
                    *t, p, 1e-5, sample_std=s, eps_outside=o, generator=seeded()
                ),
            )
        for p in (0.0, P):
            yield Case(
                "add_norm",
                f"width {width}, p {p}, not centred",
                [x, residual, scale],
                lambda f, *t, p=p: f(*t, None, p, 1e-5, centred=False, generator=seeded()),
            )
        yield Case(
            "add_norm",
            f"width {width}, p {P}, bfloat16 results",
            [x, residual, scale, shift],
            lambda f, *t: f(*t, P, 1e-5, generator=seeded(), **of_op(f, results="bfloat16")),
            **ROUNDING,
        )


def masks(batch, queries, keys):
    padding = torch.ones(batch, 1, 1, keys, dtype=torch.bool)
    for row in range(batch):
        padding[row, ..., keys - row :] = False
    causal = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril()
    empty = padding & causal
    empty[0, :, 1] = False
    return dict(none=None, padding=padding, causal=causal, empty_row=empty)


def attention_cases():
    sizes = ((3, 2, 9, 9, 16), (2, 8, 33, 33, 64), (3, None, 5, 5, 8))
    for batch, heads, queries, keys, width in sizes:
        lead = (batch,) if heads is None else (batch, heads)
        qkv = [rand(*lead, n, width, seed=i) for i, n in enumerate((queries, keys, keys))]
        for name, mask in masks(batch, queries, keys).items():
            if mask is not None and heads is None:
                mask = mask[:, 0]
            for policy in ("uniform", "zero") if name == "empty_row" else ("uniform",):
                for weights, p in itertools.product((False, True), (0.0, P)):
                    yield Case(
                        "attention",
                        f"[{', '.join(map(str, lead))}, {queries}, {width}], mask {name}, empty rows "
                        f"{policy}, p {p}" + ", weights" * weights,
                        qkv,
                        lambda f, q, k, v, m=None, o=policy, w=weights, p=p: f(
                            q, k, v, m, p, empty_rows=o, need_weights=w, generator=seeded()
                        ),
                        [] if mask is None else [mask],
                        own_masks_on_gpu=p > 0 and not weights,
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
        kinds = (False, True) if queries == keys else (False,)
        for causal, p in itertools.product(kinds, (0.0, P)):
            yield Case(
                "packed_attention",
                f"{name}, {heads} heads, p {p}" + ", causal" * causal,
                inputs,
                # The offsets are on the CPU for every device.
                lambda f, q, k, v, o=offsets, h=heads, c=causal, p=p: f(
                    q, k, v, *o, h, c, p, generator=seeded()
                ),
                own_masks_on_gpu=p > 0,
            )
        for causal in kinds:
            yield Case(
                "packed_attention",
                f"{name}, {heads} heads, offsets beside the rows" + ", causal" * causal,
                inputs,
                lambda f, q, k, v, o=offsets, h=heads, c=causal, n=(max(queries), max(keys)): f(
                    q, k, v, *[t.to(q.device, torch.int32) for t in o], h, c,
                    longest_query=n[0], longest_key=n[1],
                ),
            )


def feed_forward_cases():
    for rows, d, hidden in (((7,), 16, 24), ((300,), 256, 1024)):
        x, w1, w2 = rand(*rows, d, seed=1), rand(hidden, d, seed=2), rand(d, hidden, seed=3)
        w3 = rand(hidden, d, seed=4)
        b1, b2, b3 = (rand(n, seed=5 + i) for i, n in enumerate((hidden, d, hidden)))
        w1, w2, w3 = w1 / d**0.5, w2 / hidden**0.5, w3 / d**0.5
        biased, bare, gated = [x, w1, b1, w2, b2], [x, w1, w2], [x, w1, b1, w2, b2, w3, b3]
        for activation, p in itertools.product(("relu", "gelu"), (0.0, P)):
            words = f"{activation}, {d} to {hidden}, p {p}"
            options = dict(activation=activation)
            yield Case(
                "feed_forward",
                words,
                biased,
                lambda f, *t, p=p, o=options: f(*t, p, generator=seeded(), **o),
            )
            yield Case(
                "feed_forward",
                words + ", no biases",
                bare,
                lambda f, x, w1, w2, p=p, o=options: f(
                    x, w1, None, w2, None, p, generator=seeded(), **o
                ),
            )
        for p in (0.0, P):
            yield Case(
                "feed_forward",
                f"swiglu, {d} to {hidden}, p {p}",
                gated,
                lambda f, x, w1, b1, w2, b2, w3, b3, p=p: f(
                    *(x, w1, b1, w2, b2, p), activation="swiglu", w_3=w3, b_3=b3, generator=seeded()
                ),
            )
        yield Case(
            "feed_forward",
            f"relu, {d} to {hidden}, bfloat16 products",
            biased,
            lambda f, *t: f(*t, 0.0, **of_op(f, products="bfloat16")),
            **ROUNDING,
        )


def linear_cases():
    for rows, d, outputs in ((7, 16, 24), (300, 256, 1000)):
        x, w, b = rand(rows, d, seed=1), rand(outputs, d, seed=2) / d**0.5, rand(outputs, seed=3)
        words = f"{d} to {outputs}"
        yield Case("linear", words, [x, w, b], lambda f, x, w, b: f(x, w, b))
        yield Case("linear", words + ", no bias", [x, w], lambda f, x, w: f(x, w, None))
        yield Case(
            "linear",
            words + ", bfloat16 products",
            [x, w, b],
            lambda f, x, w, b: f(x, w, b, **of_op(f, products="bfloat16")),
            **ROUNDING,
        )


def linear_cross_entropy_cases():
    # More rows than a chunk has, and a number of classes that is not a multiple of 64.
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
        for ignored in (0, -100):
            yield Case(
                "linear_cross_entropy",
                f"{rows} rows, {classes} classes, divergence, ignored {ignored}",
                [x, w, b],
                lambda f, x, w, b, t, i=ignored: f(
                    x, w, b, t, i, 0.1, 0.25, smoothing_form="kl_divergence"
                ),
                [target],
            )
        yield Case(
            "linear_cross_entropy",
            f"{rows} rows, {classes} classes, bfloat16 products",
            [x, w, b],
            lambda f, x, w, b, t: f(x, w, b, t, 0, 0.1, 1.0, **of_op(f, products="bfloat16")),
            [target],
            **ROUNDING,
        )


def dropout_cases():
    x, residual = rand(50, 33, seed=1), rand(50, 33, seed=2)
    for p in (0.0, P, 1.0):
        yield Case("dropout", f"p {p}", [x], lambda f, x, p=p: f(x, p, generator=seeded()))
        yield Case(
            "dropout",
            f"p {p}, residual",
            [x, residual],
            lambda f, x, r, p=p: f(x, p, residual=r, generator=seeded()),
        )


def embed_cases():
    for rows, width in ((9, 33), (700, 512)):
        weight, table = rand(rows, width, seed=1), rand(11, width, seed=2)
        ids = torch.randint(0, rows, (4, 50), generator=torch.Generator().manual_seed(3))
        positions = (torch.arange(50) % 11).expand(4, 50)
        for p in (0.0, P, 1.0):
            yield Case(
                "embed",
                f"{rows} rows of {width}, p {p}",
                [weight],
                lambda f, w, i, p=p: f(w, i, 2.5, None, None, p, generator=seeded()),
                [ids],
            )
            yield Case(
                "embed",
                f"{rows} rows of {width}, p {p}, positions",
                [weight, table],
                lambda f, w, t, i, j, p=p: f(w, i, 2.5, t, j, p, generator=seeded()),
                [ids, positions],
            )


def all_cases():
    for make in (
        norm_cases,
        add_norm_cases,
        attention_cases,
        packed_attention_cases,
        feed_forward_cases,
        linear_cases,
        linear_cross_entropy_cases,
        dropout_cases,
        embed_cases,
    ):
        yield from make()
