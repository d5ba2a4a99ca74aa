"""Cases of seed 000's parts, and of a decoder layer put together from them."""

import torch
from torch import nn

import reference_seed000 as s
from masks import CAUSAL_4, D_FF, D_MODEL, PADDED_CAUSAL_4, PADDING, H, bools, given, present

# As many sentences as heads, the case in which the post mixes up the two.
OWN_KEYS = bools([[[1, 1, 0]], [[0, 1, 1]]])


def record(recorder):
    norm(recorder)
    connection(recorder)
    feed_forward(recorder)
    attention(recorder)
    multi_head(recorder)
    decoder_layer(recorder)


def norm(recorder):
    def add(title, d_model, inputs, **more):
        recorder.add(
            title,
            lambda: s.LayerNorm(d_model),
            inputs,
            module="seed000.LayerNorm",
            options={"d_model": d_model},
            **more,
        )

    add("norms each token of two sentences", 8, lambda draw: {"data": 2 * draw.normal(2, 3, 8) + 1})
    add("norms two features", 2, lambda draw: {"data": draw.normal(3, 2)})
    add(
        "gives a row of equal values its offset and a finite gradient",
        4,
        lambda draw: {
            "data": torch.tensor([[3, 3, 3, 3], [0, 0, 0, 0], [1, 0, 0, 0]], dtype=draw.dtype)
        },
    )


def connection(recorder):
    for order in ("pre", "post"):
        for title, shape in {"two sentences": (2, 3, 8), "one token": (1, 1, 8)}.items():
            recorder.add(
                f"{order}-norm around tanh: {title}",
                lambda: s.SubLayerConnection(8, order=order),
                lambda draw: {"data": draw.normal(*shape)},
                module="seed000.SubLayerConnection",
                options={"d_model": 8, "order": order},
                call=lambda module, data: {"output": module(data, torch.tanh)},
            )


def feed_forward(recorder):
    for title, (d_model, output_dim, *shape) in {
        "two sentences": (D_MODEL, D_FF, 2, 3),
        "one token, a hidden layer smaller than the model": (6, 4, 1, 1),
    }.items():
        recorder.add(
            title,
            lambda: s.FeedForward(d_model, output_dim),
            lambda draw: {"data": draw.normal(*shape, d_model)},
            module="seed000.FeedForward",
            options={"d_model": d_model, "output_dim": output_dim},
        )


def attention(recorder):
    def add(title, query, key, value, mask=None, expanded=None):
        def call(_, q, k, v, own):
            C, weight = s.attention(q, k, v, own if expanded is None else expanded)
            return {"C": C, "weight": weight}

        recorder.add(
            title,
            lambda: None,
            lambda draw: {
                "query": draw.normal(*query),
                "key": draw.normal(*key),
                "value": draw.normal(*value),
                **present(mask=mask),
            },
            module="seed000.attention",
            arguments=["query", "key", "value", *given("mask", mask)],
            call=call,
        )

    cross = ((2, 3, 4), (2, 5, 4), (2, 5, 6))
    heads = ((2, 2, 4, 3), (2, 2, 4, 3), (2, 2, 4, 3))
    add("without a mask", *cross)
    add("mask [B, Sq, Sk]", (2, 4, 4), (2, 4, 4), (2, 4, 4), PADDED_CAUSAL_4)
    add("heads, mask [B, 1, Sq, Sk]", *heads, PADDED_CAUSAL_4[:, None])
    add(
        "heads, mask [B, Sq, Sk] is batch-first",
        *heads,
        PADDED_CAUSAL_4,
        expanded=PADDED_CAUSAL_4[:, None],
    )
    add(
        "a sentence with nothing to attend gets uniform weights",
        (2, 4, 4),
        (2, 4, 4),
        (2, 4, 4),
        PADDING & bools([[[0]], [[1]]]),
    )


def multi_head(recorder):
    def add(title, shape, keys=None, mask=None, num_heads=H, d_model=D_MODEL, own=False):
        """shape [B, Sq], keys Sk; own: self-attention, one input in three places."""
        batch, length = shape

        def inputs(draw):
            values = {"query": draw.normal(batch, length, d_model)}
            if not own:
                for name in ("key", "value"):
                    values[name] = draw.normal(batch, keys or length, d_model)
            return values | present(mask=mask)

        def call(module, q, k, v, chosen):
            return {"output": module(q, k, v, chosen), "weight": module.weight}

        names = ["query"] * 3 if own else ["query", "key", "value"]
        recorder.add(
            title,
            lambda: s.MultiHeadAttention(d_model, num_heads),
            inputs,
            module="seed000.MultiHeadAttention",
            options={"d_model": d_model, "num_heads": num_heads},
            arguments=[*names, *given("mask", mask)],
            call=call,
            upstream=["output"],
        )

    add("self-attention", (2, 4), own=True)
    add("masked self-attention [B, S, S]", (2, 4), mask=PADDED_CAUSAL_4, own=True)
    add("cross-attention, K = V in length", (2, 3), 4)
    add("cross-attention, mask [B, 1, Sk]", (2, 3), 4, PADDING)
    add("each sentence its own keys, as many sentences as heads", (2, 3), mask=OWN_KEYS, own=True)
    add(
        "each sentence its own keys, more sentences than heads",
        (3, 3),
        mask=torch.cat((OWN_KEYS, bools([[[1, 0, 1]]]))),
        own=True,
    )
    add("each sentence its own keys, one sentence", (1, 3), mask=OWN_KEYS[:1], own=True)
    add("mask [S, S]", (2, 4), mask=CAUSAL_4, own=True)
    add("mask [B, 1, S, S]", (2, 4), mask=PADDED_CAUSAL_4[:, None], own=True)
    add(
        "mask [B, H, S, S]",
        (2, 4),
        mask=torch.stack((PADDED_CAUSAL_4, PADDING.expand(2, 4, 4)), dim=1),
    )
    add("a sentence with nothing to attend", (2, 4), mask=PADDING & bools([[[0]], [[1]]]), own=True)
    add("a single head", (2, 3), 4, PADDING, num_heads=1, d_model=4)


class DecoderLayer(nn.Module):
    """The three uses that the post names, each in a connection of its own. The post shows no layer."""

    def __init__(self, d_model, output_dim, num_heads, order):
        super().__init__()
        self.self_attention = s.MultiHeadAttention(d_model, num_heads)
        self.cross_attention = s.MultiHeadAttention(d_model, num_heads)
        self.feed_forward = s.FeedForward(d_model, output_dim)
        self.connections = s.clone(s.SubLayerConnection(d_model, order=order), 3)

    def forward(self, data, memory, mask):
        masked, cross, feed = self.connections
        data = masked(data, lambda x: self.self_attention(x, x, x, mask))
        data = cross(data, lambda x: self.cross_attention(x, memory, memory))
        return feed(data, self.feed_forward)


def decoder_layer(recorder):
    for order in ("pre", "post"):
        recorder.add(
            f"a decoder layer of these parts, {order}-norm",
            lambda: DecoderLayer(D_MODEL, D_FF, H, order),
            lambda draw: {
                "data": draw.normal(2, 4, D_MODEL),
                "memory": draw.normal(2, 3, D_MODEL),
                "mask": PADDED_CAUSAL_4,
            },
            module="seed000.DecoderLayer",
            options={"d_model": D_MODEL, "output_dim": D_FF, "num_heads": H, "order": order},
        )
