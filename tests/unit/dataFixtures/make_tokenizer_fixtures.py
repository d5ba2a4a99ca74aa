"""Writes tokenizers.json: what Hugging Face's Python library makes of small texts and vocabularies.

Run with tokenizers 0.23.3 from this folder: python make_tokenizer_fixtures.py
"""

import json
import random
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SENTENCES = [
    "The cat sat on the mat, and the other cat sat on the other mat.",
    "那只猫坐在垫子上，另一只猫坐在另一个垫子上。",
    "They're there; it isn't theirs, we've seen 3 of them at 10:45 on the 21st.",
    "他们在那里；这不是他们的，我们在10点45分看到了3个。",
    "Emoji 😀😀 and 👩‍👩‍👧, tabs\tand\nnew lines,  two  spaces ",
    "El niño comió; où est-il? Straße, naïve, Ελληνικά, русский, 日本語",
]


def byte_level(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def training_case(name, texts, vocab_size, min_frequency, special_tokens):
    tokenizer = byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    probes = texts[:20] + SENTENCES
    return {
        "name": name,
        "texts": texts,
        "vocabSize": vocab_size,
        "minFrequency": min_frequency,
        "specialTokens": special_tokens,
        "merges": json.loads(tokenizer.to_str())["model"]["merges"],
        "size": tokenizer.get_vocab_size(),
        "probes": probes,
        "ids": [tokenizer.encode(text).ids for text in probes],
    }


def random_texts(alphabet, count, longest):
    return ["".join(random.choices(alphabet, k=random.randrange(longest))) for _ in range(count)]


def training_cases():
    usual = ["<pad>", "<bos>", "<eos>"]
    yield training_case("two languages", SENTENCES * 3, 420, 2, usual)
    yield training_case("everything merged", SENTENCES, 5000, 1, usual)
    yield training_case("no texts", [], 500, 1, usual)
    yield training_case("an empty text", [""], 500, 1, usual)
    yield training_case("only spaces", ["   "], 500, 1, usual)
    yield training_case("no special tokens", SENTENCES, 300, 2, [])
    yield training_case("special tokens that text spells", ["aab ab aab"] * 3, 300, 1, ["a", "ab"])
    yield training_case("ties, one order", ["bbbaaaddddcccc"], 263, 1, usual)
    yield training_case("ties, the other order", ["aaabbbccccdddd"], 263, 1, usual)
    # Two letters make many ties, runs of one letter, and tokens spelled by two different merges.
    yield training_case("two letters", random_texts("ab", 60, 30), 500, 1, usual)
    yield training_case("three letters", random_texts("abc", 60, 20), 500, 2, usual)
    yield training_case("mixed scripts", random_texts("aé中😀 ", 60, 20), 500, 1, usual)


def as_encoding(tokenizer, text):
    encoding = tokenizer.encode(text, add_special_tokens=False)
    return {
        "text": text,
        "ids": encoding.ids,
        "tokens": encoding.tokens,
        "codePointOffsets": encoding.offsets,
        "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=False),
    }


def encoding_case(name, tokenizer, texts):
    return {
        "name": name,
        "json": tokenizer.to_str(),
        "encodings": [as_encoding(tokenizer, text) for text in texts],
    }


def bytes_with_fallback(fuse_unk):
    vocab = {"a": 0, "b": 1, "unk": 2, "<0x0A>": 3, "<0xE2>": 4, "<0x82>": 5, "<0xAC>": 6}
    model = models.BPE(vocab, [], unk_token="unk", byte_fallback=True, fuse_unk=fuse_unk)
    tokenizer = Tokenizer(model)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def encoding_cases():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_only = byte_level(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    # Each lone surrogate has U+FFFD in its place here, as UTF-8 has no lone surrogates.
    texts = ["i ⭢ 😀 j", "a\ufffdb", "\U0001f600", "\ufffd\ufffd", "", "a\x00b"]
    yield encoding_case("bytes only", bytes_only, texts)
    texts = ["a\nb", "€", "é", "éé", "a€b\n"]
    yield encoding_case("byte fallback", bytes_with_fallback(False), texts)
    yield encoding_case("byte fallback, unknown fused", bytes_with_fallback(True), texts)
    nbsp = Tokenizer(models.BPE({"\u00a0": 0, "\u00a0\u00a0": 1}, [("\u00a0", "\u00a0")]))
    yield encoding_case("a merge of two no-break spaces", nbsp, ["\u00a0\u00a0\u00a0"])
    spaced = {"a": 0, " ": 1, "b": 2, "c": 3, "a ": 4, "a b": 5, "a bc": 6}
    pairs = [("a", " "), ("a ", "b"), ("a b", "c")]
    yield encoding_case("tokens with spaces", Tokenizer(models.BPE(spaced, pairs)), ["a bc", "a b"])


random.seed(20)
fixtures = {"training": list(training_cases()), "encoding": list(encoding_cases())}
path = Path(__file__).with_name("tokenizers.json")
path.write_text(json.dumps(fixtures, ensure_ascii=False, indent=None) + "\n", encoding="utf-8")
