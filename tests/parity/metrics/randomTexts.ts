/** Random texts, the same as those of random_texts.py: pieces that the rules of tokenizers are about. */

// prettier-ignore
const pieces = [
    "a", "the", "cat", "Cat", "is", "on", "mat", "Straße", "ÄÖÜ", "İstanbul", "ΟΔΟΣ", "don't", "Tom's",
    "3", "10", "1,000.50", "2-3", "1990-", "x.", ".5", ",", ".", "...", "-", "--", "'", "'s", "\"", "(", ")",
    "[x]", "{y}", "<skipped>", "&amp;", "&quot;", "&lt;b&gt;", "a&b", "50%", "$5", "€5", "5€", "§", "¹", "½",
    "³.", "Ⅷ,", "٣", "٫", "،", "؟", "।", "“quoted”", "„so“", "«so»", "–", "—", "…", "·", "°C", "±", "→", "™",
    "中", "国", "中国", "你好", "。", ",", "、", "「", "」", "!", "A", "〇", "カ", "カタカナ", "ひらがな", "ー",
    "한국어", "ไทย", "हिन्दी", "עברית", "عربي", "e\u0301", "é", "\u200b", "\ufeff", "\u00ad", "\u200d",
    "😀", "👍🏽", "🇩🇪", "𠀀", "𝟘", "𝒳", "\u{1d7d8}.", "㈠", "①", "⼀", "豈", "﹏", "ʰ", "_", "a_b", "/", "\\", "@",
    "#tag", "*", "+", "=", "^", "`", "|", "~", "\u0085", "\u001c", "\u001f", "\u00a0", "\u3000", "\u2028",
    "\t", "\n", "-\n", "\n-", "\r", "\u2009", "\u205f",
];

/** A linear congruential generator (Numerical Recipes) and its upper bits. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return (this.#state >>> 8) % limit;
  }
}

function randomText(random: Random): string {
  const words = random.below(13);
  return join(
    random,
    Array.from({ length: words }, () => pieces[random.below(pieces.length)]!),
  );
}

/** Two of three pieces are separated by a space. */
function join(random: Random, parts: readonly string[]): string {
  return parts.map((part) => (random.below(3) === 0 ? part : `${part} `)).join('');
}

/** A text with some pieces lost, doubled, exchanged or moved, so that scores are neither 0 nor 100. */
function changedText(random: Random, text: string): string {
  const parts = text.split(' ');
  for (let changes = random.below(5); changes > 0; changes--) {
    const at = random.below(parts.length);
    const to = random.below(parts.length);
    const kind = random.below(4);
    if (kind === 0) parts[at] = pieces[random.below(pieces.length)]!;
    else if (kind === 1) parts.splice(to, 0, ...parts.splice(at, 1));
    else if (kind === 2) parts.splice(to, 0, parts[at]!);
    else if (parts.length > 1) parts.splice(at, 1);
  }
  return parts.join(' ');
}

/** A hypothesis and its references. */
export interface Segment {
  readonly hypothesis: string;
  readonly references: readonly string[];
}

/** Hypotheses, each with one to three references. */
export function randomCorpus(count: number, seed: number): Segment[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const reference = randomText(random);
    const hypothesis = changedText(random, reference);
    const others = Array.from({ length: random.below(3) }, () => changedText(random, reference));
    return { hypothesis, references: [reference, ...others] };
  });
}

/** Texts of many words from a few, in another order, for the limits of TER's search for shifts. */
export function longCorpus(count: number, seed: number): Segment[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const [length, words] = [1 + random.below(160), 2 + random.below(30)];
    let reference = Array.from({ length }, () => `w${random.below(words)}`);
    let hypothesis = [...reference];
    for (let changes = random.below(6); changes > 0; changes--) {
      const [start, to] = [random.below(hypothesis.length), random.below(hypothesis.length)];
      const moved = hypothesis.splice(start, 1 + random.below(70));
      hypothesis.splice(to, 0, ...moved);
    }
    if (random.below(3) === 0)
      hypothesis = hypothesis.slice(0, 1 + random.below(hypothesis.length));
    if (random.below(4) === 0) reference = reference.slice(0, 1 + random.below(3));
    return { hypothesis: hypothesis.join(' '), references: [reference.join(' ')] };
  });
}
