"""Writes ../fixtures/scores.json: what sacrebleu computes, for scores.test.ts to compare with.

    python make_scores.py          write the file
    python make_scores.py --check  compute everything again and compare it with the file

The texts are those of sentences.json, and random ones that random_texts.py and randomTexts.ts make alike.
"""

import argparse
import hashlib
import json
import os
import sys
import unicodedata
from pathlib import Path

import regex
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from random_texts import long_corpus, random_corpus

HERE = Path(__file__).parent
FILE = HERE.parent / "fixtures" / "scores.json"
RANDOM = {"count": 1000, "seed": 7}
LONG = {"count": 40, "seed": 3}

METRICS = {
    "bleu": (
        BLEU,
        [
            {},
            {"tokenize": "zh"},
            {"tokenize": "char"},
            {"tokenize": "intl"},
            {"tokenize": "none"},
            {"lowercase": True},
            {"smooth_method": "none"},
            {"smooth_method": "floor"},
            {"smooth_method": "floor", "smooth_value": 0.5},
            {"smooth_method": "add-k"},
            {"smooth_method": "add-k", "smooth_value": 0.3, "tokenize": "char"},
            {"effective_order": True},
            {"max_ngram_order": 2, "lowercase": True, "tokenize": "intl"},
        ],
    ),
    "chrf": (
        CHRF,
        [
            {},
            {"word_order": 2},
            {"word_order": 1, "char_order": 4, "beta": 3},
            {"lowercase": True},
            {"whitespace": True},
            {"eps_smoothing": True},
            {"eps_smoothing": True, "word_order": 2},
        ],
    ),
    "ter": (
        TER,
        [
            {},
            {"case_sensitive": True},
            {"normalized": True},
            {"no_punct": True},
            {"normalized": True, "asian_support": True},
            {"no_punct": True, "asian_support": True},
            {"normalized": True, "no_punct": True, "asian_support": True, "case_sensitive": True},
        ],
    ),
}

"""What the score of a sentence is compared for, on every random text."""
SENTENCES = {
    "bleu": [{"tokenize": name, "effective_order": True} for name in ("13a", "zh", "char", "intl")],
    "chrf": [{}, {"word_order": 2}],
    "ter": [{}, {"normalized": True, "asian_support": True}],
}


def streams(corpus):
    """References as sacrebleu takes them: all first ones, all second ones, and so on."""
    most = max(len(references) for _, references in corpus)
    return [
        [references[at] if at < len(references) else None for _, references in corpus]
        for at in range(most)
    ]


def corpora():
    texts = json.loads((HERE / "sentences.json").read_text(encoding="utf-8"))
    made = {
        name: [(pair["hypothesis"], pair["references"]) for pair in pairs]
        for name, pairs in texts.items()
    }
    made["random"] = random_corpus(RANDOM["count"], RANDOM["seed"])
    return made


def facts(name, score):
    if name == "bleu":
        return {
            "score": score.score,
            "precisions": score.precisions,
            "brevityPenalty": score.bp,
            "systemLength": score.sys_len,
            "referenceLength": score.ref_len,
        }
    if name == "ter":
        return {"score": score.score, "edits": score.num_edits, "referenceLength": score.ref_length}
    return {"score": score.score, "name": score.name}


def scores_of(corpus, references):
    hypotheses = [hypothesis for hypothesis, _ in corpus]
    made = []
    for name, (kind, settings) in METRICS.items():
        for options in settings:
            metric = kind(**options)
            score = metric.corpus_score(hypotheses, references)
            signature = str(metric.get_signature())
            made.append({"metric": name, "options": options, "signature": signature, **facts(name, score)})
    return made


def sentence_scores(corpus):
    made = []
    for name, settings in SENTENCES.items():
        for options in settings:
            metric = METRICS[name][0](**options)
            scores = [
                round(metric.sentence_score(hypothesis, references).score, 4)
                for hypothesis, references in corpus
            ]
            made.append({"metric": name, "options": options, "scores": scores})
    return made


def paired(corpus, seed):
    """The first references as baseline; as system the hypotheses; the last references judge."""
    kept = [(texts, references) for texts, references in corpus if len(references) > 1]
    baseline = [references[0] for _, references in kept]
    system = [texts for texts, _ in kept]
    judges = [[references[-1] for _, references in kept]]
    metrics = {"BLEU": BLEU(), "chrF": CHRF(), "TER": TER()}
    os.environ["SACREBLEU_SEED"] = str(seed)
    signatures, results = PairedTest(
        [("baseline", baseline), ("system", system)], metrics, judges, test_type="bs", n_samples=200
    )()
    keys = {"BLEU": "bleu", "chrF2": "chrf", "TER": "ter"}
    return {
        "seed": seed,
        "samples": 200,
        **{
            key: {
                "signature": str(signatures[name]),
                "baseline": result(results[name][0]),
                "system": result(results[name][1]),
                "pValue": float(results[name][1].p_value),
            }
            for name, key in keys.items()
        },
    }


def result(found):
    return {"score": float(found.score), "mean": float(found.mean), "margin": float(found.ci)}


def ranges(wanted):
    """The code points that Unicode 14 has and for which `wanted` holds, as pairs of first and last."""
    found = []
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000 or unicodedata.category(chr(code)) == "Cn" or not wanted(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def properties():
    made = {name: ranges(regex.compile(rf"\p{{{name}}}").match) for name in ("N", "P", "S")}
    return {"assigned": ranges(lambda _: True), "space": ranges(str.isspace), **made}


def make():
    texts = corpora()
    random = texts["random"]
    told = "\x01".join(text for hypothesis, references in random for text in [hypothesis, *references])
    return {
        "sacrebleu": sacrebleu.__version__,
        "random": {**RANDOM, "sha256": hashlib.sha256(told.encode()).hexdigest()},
        "corpora": {
            name: {
                "first": scores_of(corpus, streams([(text, [refs[0]]) for text, refs in corpus])),
                "all": scores_of(corpus, streams(corpus)),
            }
            for name, corpus in texts.items()
        },
        "sentences": sentence_scores(random),
        "long": {
            **LONG,
            "scores": [
                TER().sentence_score(hypothesis, references).score
                for hypothesis, references in long_corpus(**LONG)
            ],
        },
        "paired": [paired(random, 12345), paired(random, 6_000_000_000)],
        "unicode": properties(),
    }


def differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [found for key in a for found in differences(a[key], b[key], f"{path}/{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [found for at in range(len(a)) for found in differences(a[at], b[at], f"{path}/{at}")]
    if isinstance(a, float) and isinstance(b, float):
        return [] if abs(a - b) <= 1e-6 else [f"{path}: {a} and {b}"]
    return [] if a == b else [f"{path}: {str(a)[:60]} and {str(b)[:60]}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    made = make()
    if parser.parse_args().check:
        found = differences(json.loads(FILE.read_text(encoding="utf-8")), made)
        sys.exit("\n".join(found[:10]) if found else print(f"{FILE.name}: as sacrebleu computes it"))
    FILE.write_text(json.dumps(made, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB")
