"""Cases of attention and of MultiHeadedAttention, with every accepted shape of mask."""

import torch

import reference as r
from masks import CAUSAL_4, D_MODEL, PADDED_CAUSAL_4, PADDING, H, bools, given, present


def scaled_dot_product(recorder):
    def add(title, query, key, value, mask=None, expanded=None, upstream=("output",)):
        """expanded: the same mask with the batch axis first, where the post's broadcasting would
        read a rank-3 mask of a rank-4 query as one mask a head."""

        def call(_, q, k, v, own):
            output, weights = r.attention(q, k, v, own if expanded is None else expanded)
            return {"output": output, "weights": weights}

        recorder.add(
            title,
            lambda: None,
            lambda draw: {
                "query": draw.normal(*query),
                "key": draw.normal(*key),
                "value": draw.normal(*value),
                **present(mask=mask),
            },
            module="attention",
            arguments=["query", "key", "value", *given("mask", mask)],
            call=call,
            upstream=list(upstream),
        )

    plain = ((2, 3, 4), (2, 5, 4), (2, 5, 6))
    two_lengths = bools([[[1, 1, 1, 1, 1]], [[1, 1, 1, 0, 0]]])
    own_rows = bools(
        [
            [[1, 0, 1, 0, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
            [[0, 1, 0, 1, 0], [1, 0, 0, 0, 0], [1, 1, 0, 1, 1]],
        ]
    )
    add("without a mask", *plain)
    add("with a gradient to the weights too", *plain, two_lengths, upstream=("output", "weights"))
    add("mask [1, Sk], the same keys for every query", *plain, bools([[1, 0, 1, 1, 0]]))
    add("mask [Sq, Sk], the same for every sentence", *plain, own_rows[0])
    add("mask [B, 1, Sk], padding", *plain, two_lengths)
    add("mask [1, Sq, Sk], a batch axis of one", *plain, own_rows[1:])
    add("mask [B, Sq, Sk], each sentence its own", *plain, own_rows)
    add(
        "a query with nothing to attend gets uniform weights",
        *plain,
        own_rows & bools([[[1], [0], [1]], [[1], [1], [1]]]),
    )
    add(
        "a sentence with nothing to attend gets uniform weights",
        *plain,
        two_lengths & bools([[[0]], [[1]]]),
    )

    heads = ((2, 2, 4, 3), (2, 2, 4, 3), (2, 2, 4, 3))
    add("heads, without a mask", *heads)
    add("heads, mask [Sq, Sk], causal", *heads, CAUSAL_4)
    add(
        "heads, mask [B, 1, Sk] with as many sentences as heads is padding",
        *heads,
        PADDING,
        expanded=PADDING[:, None],
    )
    add(
        "heads, mask [B, Sq, Sk], padding and causal",
        *heads,
        PADDED_CAUSAL_4,
        expanded=PADDED_CAUSAL_4[:, None],
    )
    add("heads, mask [B, 1, Sq, Sk], the same for every head", *heads, PADDED_CAUSAL_4[:, None])
    add(
        "heads, mask [1, H, 1, Sk], each head its own keys",
        *heads,
        bools([[[[1, 1, 0, 1]], [[0, 1, 1, 1]]]]),
    )
    add(
        "heads, mask [B, H, Sq, Sk]",
        *heads,
        torch.stack((PADDED_CAUSAL_4, PADDING.expand(2, 4, 4)), dim=1),
    )
    add("one sentence of one token", (1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 2))


def multi_headed(recorder):
    def add(
        title,
        shape,
        keys=None,
        mask=None,
        expanded=None,
        h=H,
        d_model=D_MODEL,
        self_attention=False,
    ):
        """shape [B, Sq], keys Sk (default Sq); expanded: the mask in the post's rank 3."""
        batch, length = shape

        def inputs(draw):
            values = {"query": draw.normal(batch, length, d_model)}
            if not self_attention:
                for name in ("key", "value"):
                    values[name] = draw.normal(batch, keys or length, d_model)
            return values | present(mask=mask)

        def call(module, q, k, v, own):
            if expanded is None and own is not None and own.dim() == 4:
                return {"output": with_head_masks(module, q, k, v, own)}
            return {"output": module(q, k, v, own if expanded is None else expanded)}

        names = ["query"] * 3 if self_attention else ["query", "key", "value"]
        recorder.add(
            title,
            lambda: r.MultiHeadedAttention(h, d_model, dropout=0.0),
            inputs,
            module="MultiHeadedAttention",
            options={"h": h, "d_model": d_model, "dropout": 0.0},
            arguments=[*names, *given("mask", mask)],
            call=call,
        )

    add("three different inputs, no mask", (2, 3), 4)
    add("mask [B, 1, Sk], padding", (2, 3), 4, PADDING)
    add("mask [B, Sq, Sk], padding and causal", (2, 4), None, PADDED_CAUSAL_4)
    add("mask [Sq, Sk], causal", (2, 4), None, CAUSAL_4, expanded=CAUSAL_4[None])
    add(
        "mask [B, H, Sq, Sk], each head its own",
        (2, 4),
        None,
        torch.stack((PADDED_CAUSAL_4, PADDING.expand(2, 4, 4)), dim=1),
    )
    add("mask [B, 1, 1, Sk], padding", (2, 4), None, PADDING[:, None], expanded=PADDING)
    add("self-attention sums the three gradients", (2, 4), None, PADDING, self_attention=True)
    add(
        "three sentences and two heads",
        (3, 3),
        None,
        bools([[[1, 1, 0]], [[0, 1, 1]], [[1, 0, 1]]]),
    )
    add("one sentence", (1, 3), None, bools([[[1, 1, 0]]]))
    add("a sentence with nothing to attend", (2, 4), None, PADDING & bools([[[0]], [[1]]]))
    add("a single head", (2, 3), 4, PADDING, h=1, d_model=4)
    add("as many heads as features", (2, 3), 4, PADDING, h=4, d_model=4)


def with_head_masks(module, query, key, value, mask):
    """MultiHeadedAttention with a mask [B, H, Sq, Sk], which the post does not take."""
    split = [module.split(linear(x)) for linear, x in zip(module.linears, (query, key, value))]
    heads, _ = r.attention(*split, mask)
    return module.linears[-1](heads.transpose(1, 2).flatten(2))
