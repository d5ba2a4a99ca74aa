"""Ten losses of a small training run, the weights after it, and a trained model's answers."""

import torch

import reference as r
from recorder import DTYPES, Draw, cast

BOS, EOS = 1, 2
SIZES = {"vocab_size": 19, "N": 2, "d_model": 8, "d_ff": 16, "h": 2, "dropout": 0.0}
RATES = {"Adam": 0.01, "SGD": 0.2}


def padded(rows):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def reversals(draw, vocab_size, sentences, longest):
    """Sources of 1 to `longest` ids and their reversal between bos and eos."""
    lengths = 1 + torch.randint(longest, (sentences,), generator=draw.generator)
    rows = [(2 + draw.ids(vocab_size - 2, length)).tolist() for length in lengths.tolist()]
    return padded(rows), padded([[BOS, *reversed(row), EOS] for row in rows])


def training_runs():
    draw = Draw(seed=7, dtype=torch.float64)
    train = [reversals(draw, SIZES["vocab_size"], 4, 6) for _ in range(10)]
    validate = [reversals(draw, SIZES["vocab_size"], size, 5) for size in (4, 2)]
    torch.manual_seed(8)
    initial = r.without_dropout(r.make_model(**SIZES)).state_dict()

    tensors = {f"initial/{key}": value for key, value in initial.items()}
    for kind, batches in {"train": train, "validate": validate}.items():
        for number, (src, target) in enumerate(batches):
            tensors[f"{kind}{number}/src"], tensors[f"{kind}{number}/target"] = src, target

    runs = []
    for name, rate in RATES.items():
        for dtype in DTYPES:
            model = r.without_dropout(r.make_model(**SIZES))
            model.load_state_dict(initial)
            model = cast(model, dtype)
            optimizer = getattr(torch.optim, name)(model.parameters(), lr=rate)
            losses = []
            for src, target in train:
                model.train()
                loss = r.loss_compute(model, r.Batch.of(src, target))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            run = {"optimizer": name, "lr": rate, "dtype": dtype, "losses": losses}
            run["validationLoss"] = r.validation_loss(
                model, [r.Batch.of(*pair) for pair in validate]
            )
            run["weights"] = None
            if (name, dtype) != ("Adam", "float32"):
                run["weights"] = f"{name}/{dtype}"
                for key, value in model.named_parameters():
                    tensors[f"{name}/{dtype}/{key}"] = value
            runs.append(run)
    return {
        "options": SIZES,
        "pad": r.PAD,
        "trainBatches": len(train),
        "validateBatches": len(validate),
        "runs": runs,
    }, tensors


def greedy_answers():
    """A model that has learned to reverse up to five ids, and what it answers."""
    sizes = {"vocab_size": 12, "N": 1, "d_model": 16, "d_ff": 32, "h": 2, "dropout": 0.0}
    draw = Draw(seed=9, dtype=torch.float64)
    torch.manual_seed(10)
    model = r.without_dropout(r.make_model(**sizes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
    for _ in range(600):
        loss = r.loss_compute(model, r.Batch.of(*reversals(draw, sizes["vocab_size"], 32, 5)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    batches = []
    for max_len, rows in (
        (8, [[5, 9, 3], [11], [4, 7, 10, 6, 8], [3, 3]]),
        (8, [[7, 4, 4, 10]]),
        (3, [[5, 9, 3, 6], [8, 10]]),
    ):
        answers, lead = r.greedy_decode(model, padded(rows), max_len, BOS, EOS)
        # An answer that hangs on rounding would make the test a lottery.
        assert lead > 0.1, lead
        batches.append({"sources": rows, "maxLen": max_len, "answers": answers})
    ids = {"pad": r.PAD, "bos": BOS, "eos": EOS}
    return {"options": sizes, **ids, "batches": batches}, model.state_dict()
