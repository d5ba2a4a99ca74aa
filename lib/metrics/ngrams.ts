/** Counts of n-grams. */

/** How often each n-gram occurs. */
export type Counts = ReadonlyMap<string, number>;

/** Adds one to the count of each key. */
export function countsOf(keys: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** The n-grams of words, joined by spaces, which no word contains. */
export function wordNgrams(words: readonly string[], order: number): Map<string, number> {
  const keys = words.slice(0, Math.max(0, words.length - order + 1));
  return countsOf(keys.map((_, start) => words.slice(start, start + order).join(' ')));
}

/** The n-grams of the characters (code points) of a text, for each order from 1. */
export function characterNgrams(text: string, orders: number): Map<string, number>[] {
  const starts = characterStarts(text);
  return Array.from({ length: orders }, (_, index) => {
    const counts = new Map<string, number>();
    for (let start = 0, end = index + 1; end < starts.length; start++, end++) {
      const key = text.slice(starts[start], starts[end]);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  });
}

/** Where each character begins, and where the last one ends. */
function characterStarts(text: string): number[] {
  const starts = [0];
  for (const character of text) starts.push((starts.at(-1) as number) + character.length);
  return starts;
}

/** How many n-grams of `found` are in `wanted`, each at most as often as there. */
export function matchesOf(found: Counts, wanted: Counts): number {
  let matches = 0;
  for (const [key, count] of found) matches += Math.min(count, wanted.get(key) ?? 0);
  return matches;
}

/** The number of n-grams. */
export function totalOf(counts: Counts): number {
  let total = 0;
  for (const count of counts.values()) total += count;
  return total;
}
