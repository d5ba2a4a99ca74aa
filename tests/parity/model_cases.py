"""Cases of the whole Transformer with its loss, and the initial weights of make_model."""

import torch

import reference as r

SIZES = {"vocab_size": 13, "N": 2, "d_model": 8, "d_ff": 12, "h": 2, "dropout": 0.0}


def build():
    return r.without_dropout(r.make_model(**SIZES))


def record(recorder):
    padded = r.Batch.of(
        torch.tensor([[5, 9, 2, 7, 11], [4, 12, 3, 0, 0], [8, 0, 0, 0, 0]]),
        torch.tensor([[1, 6, 10, 2, 0], [1, 7, 2, 0, 0], [1, 3, 3, 9, 2]]),
    )
    alone = r.Batch.of(torch.tensor([[4, 12, 3]]), torch.tensor([[1, 7, 2]]))
    empty_source = r.Batch.of(
        torch.tensor([[0, 0, 0], [4, 5, 0]]), torch.tensor([[1, 6, 2], [1, 8, 2]])
    )
    single = r.Batch.of(torch.tensor([[4]]), torch.tensor([[1, 2]]))

    def add(title, batch, masks):
        inputs = {
            "src": batch.src,
            "tgt": batch.tgt,
            "src_mask": batch.src_mask,
            "tgt_mask": batch.tgt_mask,
            "tgt_y": batch.tgt_y,
        }
        used = {name: value for name, value in inputs.items() if masks or "mask" not in name}

        def call(model, src, tgt, src_mask, tgt_mask, tgt_y):
            output = model(src, tgt, src_mask, tgt_mask)
            log_probabilities = model.generator(output)
            loss = (
                torch.nn.functional.nll_loss(
                    log_probabilities.flatten(0, 1),
                    tgt_y.flatten(),
                    ignore_index=r.PAD,
                    reduction="sum",
                )
                / (tgt_y != r.PAD).sum()
            )
            if masks:
                torch.testing.assert_close(loss, r.loss_compute(model, batch))
            return {"output": output, "log_probabilities": log_probabilities, "loss": loss}

        recorder.add(
            title,
            build,
            lambda draw: used,
            module="Transformer",
            options=SIZES,
            call=call,
            arguments=[name if name in used else None for name in inputs],
            upstream=["loss"],
        )

    add("three sentences of different lengths, padded", padded, masks=True)
    add("the same without any mask", padded, masks=False)
    add("a row of that batch alone, without its padding", alone, masks=True)
    add("a source of padding only beside a good one", empty_source, masks=True)
    add("one token in, one token out", single, masks=True)


def initial_model():
    """A state dict as the post's code saves it: make_model's own initial weights, all keys."""
    options = {"vocab_size": 11, "N": 2, "d_model": 8, "d_ff": 16, "h": 2, "dropout": 0.3}
    torch.manual_seed(20)
    model = r.make_model(**options).eval()
    batch = r.Batch.of(
        torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([[1, 9, 10, 2], [1, 4, 2, 0]])
    )
    with torch.no_grad():
        output = model(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)
        log_probabilities = model.generator(output)
    described = {
        "options": options,
        "src": batch.src.tolist(),
        "tgt": batch.tgt.tolist(),
        "keys": list(model.state_dict()),
        "parameters": [name for name, _ in model.named_parameters()],
        "dropouts": {
            name: part.p
            for name, part in model.named_modules()
            if isinstance(part, torch.nn.Dropout)
        },
        "logProbabilities": log_probabilities.tolist(),
    }
    return described, model.state_dict()
