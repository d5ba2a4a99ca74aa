/** Length-bucketed token batches, by the rule that ours and the peers share. */
import type { IdPair } from '../trainJob.js';

/**
 * Cuts pairs, sorted by length, into batches of at most `tokens` tokens. They are counted as fairseq's
 * `--max-tokens` counts them, with padding: the longest side of the batch times its number of pairs. A
 * longer pair forms its own batch. `bench/peers/buckets.py` cuts by the same rule.
 */
export function cutBuckets(pairs: readonly IdPair[], tokens: number): IdPair[][] {
  const batches: IdPair[][] = [];
  let batch: IdPair[] = [];
  for (const pair of [...pairs].sort(byLength)) {
    // Sorted, so this pair is the longest of the batch.
    if (batch.length > 0 && (batch.length + 1) * longerSide(pair) > tokens) {
      batches.push(batch);
      batch = [];
    }
    batch.push(pair);
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}

/** The order that left the least padding on Multi30k, of those that users sort by. */
function byLength(a: IdPair, b: IdPair): number {
  return longerSide(a) - longerSide(b) || targets(a) - targets(b) || a.src.length - b.src.length;
}

/** Positions that the pair needs: its source, and its target without the last id. */
export function longerSide(pair: IdPair): number {
  return Math.max(pair.src.length, targets(pair));
}

/** Number of predicted tokens. */
export function targets({ tgt }: IdPair): number {
  return tgt.length - 1;
}
