"""Cases of the single parts, from the norms to the two stacks."""

import torch

import reference as r
from attention_cases import multi_headed, scaled_dot_product
from masks import CAUSAL, D_FF, D_MODEL, PADDING, H, N, bools, given, present
from reference_norms import SampleLayerNorm, TorchLayerNorm


def record(recorder):
    norms(recorder)
    scaled_dot_product(recorder)
    multi_headed(recorder)
    feed_forward(recorder)
    sublayers(recorder)
    encoder(recorder)
    decoder(recorder)
    embeddings(recorder)
    generator(recorder)


def norms(recorder):
    kinds = {
        "LayerNorm": (r.LayerNorm, "features", 1e-6),
        "SampleLayerNorm": (SampleLayerNorm, "d_model", 1e-6),
        "TorchLayerNorm": (TorchLayerNorm, "normalized_shape", 1e-5),
    }
    for name, (kind, size, default) in kinds.items():

        def add(title, features, inputs, eps=default, dtypes=("float32", "float64")):
            recorder.add(
                title,
                lambda: kind(features, eps=eps),
                inputs,
                module=name,
                options={size: features, "eps": eps},
                dtypes=dtypes,
            )

        add(
            "norms each token of two sentences", 8, lambda draw: {"x": 2 * draw.normal(2, 3, 8) + 1}
        )
        add("norms the rows of a matrix", 5, lambda draw: {"x": draw.normal(4, 5)})
        add("takes another eps", 8, lambda draw: {"x": 0.1 * draw.normal(2, 3, 8)}, eps=1e-2)
        add(
            "gives a row of equal values its offset and a finite gradient",
            4,
            lambda draw: {
                "x": torch.tensor([[3, 3, 3, 3], [0, 0, 0, 0], [1, 0, 0, 0]], dtype=draw.dtype)
            },
        )
        add(
            "keeps its precision far from zero",
            8,
            lambda draw: {"x": draw.normal(3, 8) + 1000},
            dtypes=("float64",),
        )
    recorder.add(
        "gives a single feature its offset",
        lambda: r.LayerNorm(1),
        lambda draw: {"x": draw.normal(2, 3, 1)},
        module="LayerNorm",
        options={"features": 1, "eps": 1e-6},
    )


def feed_forward(recorder):
    def add(title, d_model, d_ff, *shape):
        recorder.add(
            title,
            lambda: r.PositionwiseFeedForward(d_model, d_ff, dropout=0.0),
            lambda draw: {"x": draw.normal(*shape)},
            module="PositionwiseFeedForward",
            options={"d_model": d_model, "d_ff": d_ff, "dropout": 0.0},
        )

    add("two sentences", D_MODEL, D_FF, 2, 3, D_MODEL)
    add("a matrix of rows", D_MODEL, D_FF, 5, D_MODEL)
    add("one token, a hidden layer smaller than the model", 6, 4, 1, 1, 6)


def sublayers(recorder):
    for title, shape in {"two sentences": (2, 3, 8), "one token": (1, 1, 8)}.items():
        recorder.add(
            f"adds tanh of the normed input to the input: {title}",
            lambda: r.SublayerConnection(8, dropout=0.0),
            lambda draw: {"x": draw.normal(*shape)},
            module="SublayerConnection",
            options={"size": 8, "dropout": 0.0},
            call=lambda module, x: {"output": module(x, torch.tanh)},
        )


def attention_part():
    return r.MultiHeadedAttention(H, D_MODEL, dropout=0.0)


def feed_forward_part():
    return r.PositionwiseFeedForward(D_MODEL, D_FF, dropout=0.0)


def encoder_layer():
    return r.EncoderLayer(D_MODEL, attention_part(), feed_forward_part(), dropout=0.0)


def decoder_layer():
    own, source = attention_part(), attention_part()
    return r.DecoderLayer(D_MODEL, own, source, feed_forward_part(), dropout=0.0)


SIZES = {"d_model": D_MODEL, "d_ff": D_FF, "h": H, "dropout": 0.0}


def encoder(recorder):
    masks = {
        "no mask": None,
        "padding": PADDING,
        "a sentence of padding only": PADDING & bools([[[0]], [[1]]]),
    }
    stack = {"padding": PADDING}
    kinds = {
        "EncoderLayer": (encoder_layer, SIZES, masks),
        "Encoder": (lambda: r.Encoder(encoder_layer(), N), SIZES | {"N": N}, stack),
    }
    for module, (build, options, masks) in kinds.items():
        for title, mask in masks.items():
            recorder.add(
                title,
                build,
                lambda draw: {"x": draw.normal(2, 4, D_MODEL)} | present(mask=mask),
                module=module,
                options=options,
                arguments=["x", *given("mask", mask)],
            )
        recorder.add(
            "one sentence of one token",
            build,
            lambda draw: {"x": draw.normal(1, 1, D_MODEL)},
            module=module,
            options=options,
            arguments=["x", None],
        )


def decoder(recorder):
    three = bools([[[1, 1, 1]], [[1, 1, 0]]])
    masks = {
        "no masks": (None, None),
        "padded source": (PADDING, None),
        "causal target": (None, r.subsequent_mask(3)),
        "padded source, padded and causal target": (PADDING, three & CAUSAL),
        "a source of padding only": (PADDING & bools([[[0]], [[1]]]), three & CAUSAL),
    }
    both = "padded source, padded and causal target"
    stack = {both: masks[both]}
    kinds = {
        "DecoderLayer": (decoder_layer, SIZES, masks),
        "Decoder": (lambda: r.Decoder(decoder_layer(), N), SIZES | {"N": N}, stack),
    }
    for module, (build, options, masks) in kinds.items():
        for title, (src_mask, tgt_mask) in masks.items():
            recorder.add(
                title,
                build,
                lambda draw: {
                    "x": draw.normal(2, 3, D_MODEL),
                    "memory": draw.normal(2, 4, D_MODEL),
                    **present(src_mask=src_mask, tgt_mask=tgt_mask),
                },
                module=module,
                options=options,
                arguments=[
                    "x",
                    "memory",
                    *given("src_mask", src_mask),
                    *given("tgt_mask", tgt_mask),
                ],
            )


def embeddings(recorder):
    for title, rows in {
        "adds up the gradients of a repeated id": [[1, 4, 4, 0], [6, 1, 4, 2]],
        "one id": [[3]],
    }.items():
        recorder.add(
            title,
            lambda: r.TransformerEmbedding(D_MODEL, 7),
            lambda draw: {"x": torch.tensor(rows)},
            module="TransformerEmbedding",
            options={"d_model": D_MODEL, "vocab_size": 7},
        )
    for title, options, shape in (
        ("adds sines and cosines", {"d_model": 8, "dropout": 0.0, "max_len": 20}, (2, 5, 8)),
        (
            "fills its table to the last row",
            {"d_model": 6, "dropout": 0.0, "max_len": 7},
            (1, 7, 6),
        ),
    ):
        recorder.add(
            title,
            lambda: r.PositionalEncoding(**options),
            lambda draw: {"x": draw.normal(*shape)},
            module="PositionalEncoding",
            options=options,
        )


def generator(recorder):
    for title, scale in {
        "log-probabilities": 1,
        "log-probabilities of logits whose exponentials overflow float32": 60,
    }.items():
        recorder.add(
            title,
            lambda: r.Generator(D_MODEL, 11),
            lambda draw: {"x": scale * draw.normal(2, 3, D_MODEL)},
            module="Generator",
            options={"d_model": D_MODEL, "vocab_size": 11},
        )


def position_tables():
    """The post's whole table for d_model 8, and some rows of the one for its default of 512: 192
    holds the value furthest from its exact sine, 1.3e-5."""
    rows = [0, 57, 192, 199]
    tensors = {
        "d8/float32": r.position_table(200, 8),
        "d8/float64": r.position_table(200, 8, torch.float64),
        "d512/float32": r.position_table(200, 512)[rows],
        "d512/float64": r.position_table(200, 512, torch.float64)[rows],
    }
    return {"maxLen": 200, "rowsOf512": rows}, tensors
