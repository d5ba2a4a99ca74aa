"""Cases of seed 002's parts. Its masks are true where attention is blocked."""

import torch

import reference_seed002 as s
from masks import CAUSAL_4, D_FF, D_MODEL, PADDED_CAUSAL_4, PADDING, H, bools

PADDED, FUTURE, PADDED_FUTURE = ~PADDING, ~CAUSAL_4, ~PADDED_CAUSAL_4
NOTHING_BLOCKED = torch.zeros(2, 1, 4, 4, dtype=torch.bool)
FIRST_SENTENCE_BLOCKED = PADDED | bools([[[1]], [[0]]])
MASKS = {
    "nothing blocked": NOTHING_BLOCKED,
    "mask [b, 1, S, S], padding and future blocked": PADDED_FUTURE[:, None],
    "mask [b, 1, 1, S], padding blocked": PADDED[:, None],
    "mask [b, H, S, S], each head its own": torch.stack(
        (PADDED_FUTURE, PADDED.expand(2, 4, 4)), dim=1
    ),
    "mask [S, S], the future blocked": FUTURE,
    "mask [b, 1, S] is batch-first": PADDED,
    "mask [b, S, S] is batch-first": PADDED_FUTURE,
    "a sentence with every key blocked is uniform": FIRST_SENTENCE_BLOCKED[:, None],
}


def record(recorder):
    attention(recorder)
    multi_head(recorder)
    position_embedding(recorder)
    fully_connected(recorder)


def attention(recorder):
    for title, mask in MASKS.items():
        recorder.add(
            title,
            lambda: None,
            lambda draw: {name: draw.normal(2, H, 4, 3) for name in "QKV"} | {"mask": mask},
            module="seed002.attention",
            call=lambda _, *given: {"output": s.attention(*given)},
        )


def multi_head(recorder):
    def add(title, inputs, arguments=("Q", "K", "V", "mask"), width=D_MODEL, heads=H):
        recorder.add(
            title,
            lambda: s.MultiHead(width, heads),
            inputs,
            module="seed002.MultiHead",
            options={"width": width, "heads": heads},
            arguments=list(arguments),
        )

    for title, mask in MASKS.items():
        add(
            title,
            lambda draw: {name: draw.normal(2, 4, D_MODEL) for name in "QKV"} | {"mask": mask},
        )
    add(
        "self-attention sums the gradients of Q, K, V and of the Q added back",
        lambda draw: {"Q": draw.normal(2, 4, D_MODEL), "mask": PADDED_FUTURE[:, None]},
        ("Q", "Q", "Q", "mask"),
    )
    add(
        "a decoder's memory is normed like its queries, and may be longer",
        lambda draw: {
            "Q": draw.normal(2, 3, D_MODEL),
            "memory": 2 * draw.normal(2, 4, D_MODEL) + 1,
            "mask": PADDED[:, None],
        },
        ("Q", "memory", "memory", "mask"),
    )
    add(
        "the post's own sizes",
        lambda draw: {
            "Q": draw.normal(1, 50, 32),
            "mask": torch.arange(50).gt(41)[None, None, None] | ~torch.ones(50, 50).tril().bool(),
        },
        ("Q", "Q", "Q", "mask"),
        width=32,
        heads=4,
    )


def position_embedding(recorder):
    for title, (words, positions, width), rows in (
        ("adds up the gradients of a repeated id", (7, 4, 8), [[1, 4, 4, 0], [6, 1, 4, 2]]),
        ("one place", (5, 1, 6), [[3], [3]]),
    ):
        recorder.add(
            title,
            lambda: s.PositionEmbedding(words, positions, width),
            lambda draw: {"x": torch.tensor(rows)},
            module="seed002.PositionEmbedding",
            options={"words": words, "positions": positions, "width": width},
        )


def fully_connected(recorder):
    for title, (width, hidden, *shape) in {
        "two sentences": (D_MODEL, D_FF, 2, 3),
        "one token, a hidden layer smaller than the model": (6, 4, 1, 1),
    }.items():
        recorder.add(
            title,
            lambda: s.FullyConnectedOutput(width, hidden),
            lambda draw: {"x": draw.normal(*shape, width)},
            module="seed002.FullyConnectedOutput",
            options={"width": width, "hidden": hidden},
        )
