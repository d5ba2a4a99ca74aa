"""Random texts, the same as those of randomTexts.ts: pieces that the rules of tokenizers are about."""

PIECES = [
    "a", "the", "cat", "Cat", "is", "on", "mat", "Straße", "ÄÖÜ", "İstanbul", "ΟΔΟΣ", "don't", "Tom's",
    "3", "10", "1,000.50", "2-3", "1990-", "x.", ".5", ",", ".", "...", "-", "--", "'", "'s", "\"", "(", ")",
    "[x]", "{y}", "<skipped>", "&amp;", "&quot;", "&lt;b&gt;", "a&b", "50%", "$5", "€5", "5€", "§", "¹", "½",
    "³.", "Ⅷ,", "٣", "٫", "،", "؟", "।", "“quoted”", "„so“", "«so»", "–", "—", "…", "·", "°C", "±", "→", "™",
    "中", "国", "中国", "你好", "。", ",", "、", "「", "」", "!", "A", "〇", "カ", "カタカナ", "ひらがな", "ー",
    "한국어", "ไทย", "हिन्दी", "עברית", "عربي", "e\u0301", "é", "\u200b", "\ufeff", "\u00ad", "\u200d",
    "😀", "👍🏽", "🇩🇪", "𠀀", "𝟘", "𝒳", "\U0001d7d8.", "㈠", "①", "⼀", "豈", "﹏", "ʰ", "_", "a_b", "/", "\\", "@",
    "#tag", "*", "+", "=", "^", "`", "|", "~", "\u0085", "\u001c", "\u001f", "\u00a0", "\u3000", "\u2028",
    "\t", "\n", "-\n", "\n-", "\r", "\u2009", "\u205f",
]  # fmt: skip


class Random:
    """A linear congruential generator (Numerical Recipes) and its upper bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % limit


def random_text(random):
    words = random.below(13)
    return join(random, [PIECES[random.below(len(PIECES))] for _ in range(words)])


def join(random, pieces):
    """Two of three pieces are separated by a space."""
    return "".join(piece if random.below(3) == 0 else piece + " " for piece in pieces)


def changed_text(random, text):
    """A text with some pieces lost, doubled, exchanged or moved, so that scores are neither 0 nor 100."""
    pieces = text.split(" ")
    for _ in range(random.below(5)):
        at = random.below(len(pieces))
        to = random.below(len(pieces))
        kind = random.below(4)
        if kind == 0:
            pieces[at] = PIECES[random.below(len(PIECES))]
        elif kind == 1:
            pieces.insert(to, pieces.pop(at))
        elif kind == 2:
            pieces.insert(to, pieces[at])
        elif len(pieces) > 1:
            pieces.pop(at)
    return " ".join(pieces)


def random_corpus(count, seed):
    """Hypotheses, each with one to three references."""
    random = Random(seed)
    corpus = []
    for _ in range(count):
        reference = random_text(random)
        hypothesis = changed_text(random, reference)
        others = [changed_text(random, reference) for _ in range(random.below(3))]
        corpus.append((hypothesis, [reference, *others]))
    return corpus


def long_corpus(count, seed):
    """Texts of many words from a few, in another order, for the limits of TER's search for shifts."""
    random = Random(seed)
    corpus = []
    for _ in range(count):
        length, words = 1 + random.below(160), 2 + random.below(30)
        reference = [f"w{random.below(words)}" for _ in range(length)]
        hypothesis = list(reference)
        for _ in range(random.below(6)):
            start, to = random.below(len(hypothesis)), random.below(len(hypothesis))
            moved = hypothesis[start : start + 1 + random.below(70)]
            del hypothesis[start : start + len(moved)]
            hypothesis[to:to] = moved
        if random.below(3) == 0:
            hypothesis = hypothesis[: 1 + random.below(len(hypothesis))]
        if random.below(4) == 0:
            reference = reference[: 1 + random.below(3)]
        corpus.append((" ".join(hypothesis), [" ".join(reference)]))
    return corpus
