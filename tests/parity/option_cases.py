"""Cases of the parts that have options, and of whole models with them."""

import torch

import reference as r
import reference_options as o
from masks import CAUSAL_4, D_FF, D_MODEL, PADDED_CAUSAL_4, PADDING, H, bools, given, present

SIZES = {"vocab_size": 9, "N": 1, "d_model": 8, "d_ff": 6, "h": 2, "max_len": 12}

MODELS = {
    "the defaults": {},
    "norm: sample deviation, eps added to it": {"norm": "sample"},
    "norm: torch's": {"norm": "torch"},
    "norm: RMS": {"norm": "rms"},
    "pre-norm without final norms": {"final_norm": False},
    "post-norm, two layers": {"order": "post", "final_norm": False, "N": 2},
    "post-norm with final norms, two layers": {"order": "post", "N": 2},
    "positions: one exponent a column": {"positions": "perColumn"},
    "positions: learned": {"positions": "learned"},
    "positions: rotary": {"positions": "rotary"},
    "positions: none": {"positions": "none"},
    "activation: GELU": {"activation": "gelu"},
    "activation: SwiGLU": {"activation": "swiglu"},
    "one matrix for source and target": {"tie": "src-tgt"},
    "one matrix for target and generator": {"tie": "tgt-generator"},
    "one matrix for all three": {"tie": "all"},
    "two vocabularies": {"vocab_size": (7, 9)},
    "two vocabularies, target and generator tied": {"vocab_size": (7, 9), "tie": "tgt-generator"},
    "no biases": {"bias": ()},
    "no biases in attention": {"bias": ("feedForward", "generator")},
    "no bias in the generator": {"bias": ("attention", "feedForward")},
    "empty rows are zero": {"empty_rows": "zero"},
    "as the paper: post-norm, torch's norm, one matrix for all": {
        "order": "post",
        "final_norm": False,
        "norm": "torch",
        "tie": "all",
    },
    "as in GPT-2: learned positions, GELU, torch's norm, generator tied without bias": {
        "positions": "learned",
        "activation": "gelu",
        "norm": "torch",
        "tie": "tgt-generator",
        "bias": ("attention", "feedForward"),
    },
    "as in LLaMA: rotary, SwiGLU, RMS norm, no biases": {
        "positions": "rotary",
        "activation": "swiglu",
        "norm": "rms",
        "bias": (),
    },
}


def record(recorder):
    norm(recorder)
    connection(recorder)
    feed_forward(recorder)
    attention(recorder)
    multi_headed(recorder)
    for title, options in MODELS.items():
        model(recorder, title, options)


def norm(recorder):
    for title, options, inputs in (
        ("norms each token of two sentences", {}, lambda draw: 2 * draw.normal(2, 3, 8) + 1),
        ("takes another eps", {"eps": 1e-2}, lambda draw: 0.1 * draw.normal(2, 3, 8)),
        ("norms a row of zeros", {}, lambda draw: draw.normal(3, 8) * bools([[1], [0], [1]])),
    ):
        recorder.add(
            title,
            lambda: o.RMSNorm(8, **options),
            lambda draw: {"x": inputs(draw)},
            module="RMSNorm",
            options={"features": 8} | options,
        )


def connection(recorder):
    for order in ("pre", "post"):
        for kind in ("layer", "rms"):
            recorder.add(
                f"{order}-norm around tanh, norm: {kind}",
                lambda: o.SublayerConnection(8, order=order, norm=kind),
                lambda draw: {"x": draw.normal(2, 3, 8)},
                module="SublayerConnection",
                options={"size": 8, "order": order, "norm": kind},
                call=lambda module, x: {"output": module(x, torch.tanh)},
            )


def feed_forward(recorder):
    for activation in ("relu", "gelu", "swiglu"):
        for bias in (True, False):
            recorder.add(
                f"{activation}, {'biases' if bias else 'no biases'}",
                lambda: o.FeedForward(D_MODEL, D_FF, activation=activation, bias=bias),
                # A wide range: the ends of the activations count, too.
                lambda draw: {"x": 3 * draw.normal(2, 3, D_MODEL)},
                module="PositionwiseFeedForward",
                options={
                    "d_model": D_MODEL,
                    "d_ff": D_FF,
                    "activation": activation,
                    "bias": bias,
                },
            )


def attention(recorder):
    def add(title, shape, mask, expanded=None):
        def call(_, q, k, v, own):
            used = own if expanded is None else expanded
            output, weights = o.attention(q, k, v, used, empty_rows="zero")
            return {"output": output, "weights": weights}

        recorder.add(
            title,
            lambda: None,
            lambda draw: {name: draw.normal(*shape) for name in ("query", "key", "value")}
            | {"mask": mask},
            module="attention",
            options={"empty_rows": "zero"},
            call=call,
        )

    some = PADDED_CAUSAL_4 & bools([[[1], [0], [1], [1]], [[1], [1], [1], [0]]])
    add("a query with nothing to attend gets zeros", (2, 4, 4), some)
    add("heads, a query with nothing to attend gets zeros", (2, 2, 4, 3), some, some[:, None])
    padding_only = PADDING & bools([[[0]], [[1]]])
    add("mask [B, 1, Sk], a sentence of padding gets zeros", (2, 4, 4), padding_only)


def multi_headed(recorder):
    def add(title, options, mask=None, rank_3=None):
        recorder.add(
            title,
            lambda: o.MultiHeadedAttention(H, D_MODEL, **options),
            lambda draw: {name: draw.normal(2, 4, D_MODEL) for name in ("query", "key", "value")}
            | present(mask=mask),
            module="MultiHeadedAttention",
            options={"h": H, "d_model": D_MODEL} | options,
            arguments=["query", "key", "value", *given("mask", mask)],
            call=lambda module, q, k, v, own: {
                "output": module(q, k, v, own if rank_3 is None else rank_3)
            },
        )

    add("no biases", {"bias": False}, PADDED_CAUSAL_4)
    add("rotary, no mask", {"rotary": True})
    add("rotary, padding and causal", {"rotary": True}, PADDED_CAUSAL_4)
    add("empty rows are zero", {"empty_rows": "zero"}, PADDING & bools([[[0]], [[1]]]))
    add(
        "empty rows are zero, mask [Sq, Sk] leaves none empty",
        {"empty_rows": "zero"},
        CAUSAL_4,
        CAUSAL_4[None],
    )


def model(recorder, title, options):
    sizes = SIZES | options
    # The third sentence of the source is padding only.
    batch = r.Batch.of(
        torch.tensor([[5, 3, 2, 4, 6], [4, 6, 3, 0, 0], [0, 0, 0, 0, 0]]),
        torch.tensor([[1, 6, 8, 2, 0], [1, 7, 2, 0, 0], [1, 3, 3, 8, 2]]),
    )

    def call(module, src, tgt, src_mask, tgt_mask, tgt_y):
        output = module(src, tgt, src_mask, tgt_mask)
        log_probabilities = module.generator(output)
        # Half types compute the loss in float32.
        exact = log_probabilities if output.dtype == torch.float64 else log_probabilities.float()
        loss = torch.nn.functional.nll_loss(
            exact.flatten(0, 1), tgt_y.flatten(), ignore_index=r.PAD, reduction="sum"
        )
        return {
            "output": output,
            "log_probabilities": log_probabilities,
            "loss": loss / batch.ntokens,
        }

    recorder.add(
        title,
        lambda: o.make_model(**sizes),
        lambda draw: {
            "src": batch.src,
            "tgt": batch.tgt,
            "src_mask": batch.src_mask,
            "tgt_mask": batch.tgt_mask,
            "tgt_y": batch.tgt_y,
        },
        module="makeModel",
        options={
            name: list(value) if isinstance(value, tuple) else value
            for name, value in sizes.items()
        },
        call=call,
        upstream=["loss"],
    )
