import { PairHeap, type Candidate } from './pairHeap.js';

/** The result of training. */
export interface BpeVocabulary {
  /** All tokens; the index is the id. */
  tokens: string[];
  /** Merges in the order of their application, as pairs of tokens. */
  merges: [string, string][];
}

export interface MergeOptions {
  /** Tokens with the first ids: special tokens, then the alphabet. */
  initial: readonly string[];
  vocabSize: number;
  minFrequency: number;
}

/** Upper bound of ids, so that a pair fits in one number as a map key; far above any vocabulary. */
const idLimit = 2 ** 26;

/** Number of merges between two pauses. */
const mergesPerPause = 64;

/**
 * Finds the merges of byte-pair encoding: repeatedly, the most frequent pair of adjacent tokens
 * becomes a token, with ties going to the lower ids. Pair counts are updated only where a merge
 * changed a word. The order of merges is that of Hugging Face's BpeTrainer, including its handling
 * of a token that two different merges produce.
 *
 * @param wordCounts words in the characters of the alphabet, and how often each occurs
 * @param pause called between groups of merges with the number of tokens; may wait or throw
 */
export async function findMerges(
  wordCounts: ReadonlyMap<string, number>,
  { initial, vocabSize, minFrequency }: MergeOptions,
  pause: (tokens: number) => Promise<void>,
): Promise<BpeVocabulary> {
  const tokens = [...initial];
  const idOf = new Map(tokens.map((token, id) => [token, id]));
  const words: Word[] = [];
  for (const [text, count] of wordCounts) {
    const symbols = [...text].map((letter) => idOf.get(letter)).filter((id) => id !== undefined);
    words.push({ symbols, count });
  }

  const pairs = new PairCounts();
  words.forEach((word, index) => {
    for (let i = 1; i < word.symbols.length; i++) {
      pairs.add(word.symbols[i - 1] as number, word.symbols[i] as number, word.count, index);
    }
  });
  const heap = new PairHeap();
  pairs.moveFreshTo(heap);

  const ranks = new Map<number, [string, string]>();
  let steps = 0;
  while (tokens.length < vocabSize) {
    const top = heap.pop();
    if (top === undefined) break;
    const count = pairs.countOf(top.left, top.right);
    if (count !== top.count) {
      // Later merges have replaced some of its occurrences.
      if (count > 0) heap.push({ ...top, count });
      continue;
    }
    if (count < minFrequency) break;
    const pair: [string, string] = [tokens[top.left] as string, tokens[top.right] as string];
    const merged = pair[0] + pair[1];
    let id = idOf.get(merged);
    if (id === undefined) {
      id = tokens.length;
      tokens.push(merged);
      idOf.set(merged, id);
    }
    const key = keyOf(top.left, top.right);
    // A pair that is merged again moves to its last position, as if its rank were overwritten.
    ranks.delete(key);
    ranks.set(key, pair);
    for (const index of top.words) mergeInWord(words[index] as Word, index, top, id, pairs);
    pairs.moveFreshTo(heap);
    if (++steps % mergesPerPause === 0) await pause(tokens.length);
  }
  return { tokens, merges: [...ranks.values()] };
}

interface Word {
  symbols: number[];
  count: number;
}

function keyOf(left: number, right: number): number {
  return left * idLimit + right;
}

/** How often each pair occurs, and the words with new occurrences of pairs. */
class PairCounts {
  private readonly counts = new Map<number, number>();
  private fresh = new Map<number, Candidate>();

  countOf(left: number, right: number): number {
    return this.counts.get(keyOf(left, right)) ?? 0;
  }

  /** Adds `amount`, which may be negative, to the count of a pair. Call with ascending `word`. */
  add(left: number, right: number, amount: number, word: number): void {
    const key = keyOf(left, right);
    this.counts.set(key, (this.counts.get(key) ?? 0) + amount);
    if (amount <= 0) return;
    const entry = this.fresh.get(key);
    if (entry === undefined) this.fresh.set(key, { left, right, count: 0, words: [word] });
    else if (entry.words[entry.words.length - 1] !== word) entry.words.push(word);
  }

  moveFreshTo(heap: PairHeap): void {
    for (const entry of this.fresh.values()) {
      entry.count = this.countOf(entry.left, entry.right);
      if (entry.count > 0) heap.push(entry);
    }
    this.fresh.clear();
  }
}

/** Replaces each occurrence of the pair in a word with `id`. */
function mergeInWord(
  word: Word,
  index: number,
  { left, right }: Candidate,
  id: number,
  pairs: PairCounts,
): void {
  const { symbols, count } = word;
  let to = 0;
  for (let from = 0; from < symbols.length; from++, to++) {
    if (symbols[from] !== left || symbols[from + 1] !== right) {
      symbols[to] = symbols[from] as number;
      continue;
    }
    if (to > 0) {
      const previous = symbols[to - 1] as number;
      pairs.add(previous, left, -count, index);
      pairs.add(previous, id, count, index);
    }
    const next = symbols[from + 2];
    if (next !== undefined) {
      pairs.add(right, next, -count, index);
      pairs.add(id, next, count, index);
    }
    symbols[to] = id;
    from++;
  }
  symbols.length = to;
}
