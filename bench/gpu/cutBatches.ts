/** Batches for the GPU sizes. */
import { SeededRandom } from 'torchformer';
import type { IdPair } from '../trainJob.js';
import type { GpuSize } from './gpuSizes.js';

/**
 * The first `count` batches of the pairs.
 *
 * @throws Error if there are not enough pairs
 */
export function cutBatches(
  pairs: readonly IdPair[],
  batch: GpuSize['batch'],
  count: number,
): IdPair[][] {
  const all = 'pairs' in batch ? byPairs(pairs, batch.pairs) : byTokens(pairs, batch.tokens);
  if (all.length < count) {
    throw new Error(`the pairs make ${all.length} batches, ${count} are needed`);
  }
  return all.slice(0, count);
}

function byPairs(pairs: readonly IdPair[], size: number): IdPair[][] {
  return Array.from({ length: Math.floor(pairs.length / size) }, (_, index) =>
    pairs.slice(index * size, (index + 1) * size),
  );
}

/** Full batches of pairs of similar length, in a random order that is the same in every call. */
function byTokens(pairs: readonly IdPair[], tokens: number): IdPair[][] {
  const sorted = [...pairs].sort((a, b) => longerSide(a) - longerSide(b));
  const batches: IdPair[][] = [];
  let batch: IdPair[] = [];
  for (const pair of sorted) {
    // Sorted, so this pair is the longest of the batch: padding counts like tokens.
    if ((batch.length + 1) * longerSide(pair) > tokens) {
      batches.push(batch);
      batch = [];
    }
    batch.push(pair);
  }
  new SeededRandom(1).shuffle(batches);
  return batches;
}

/** Positions that the pair needs: its source, and its target without the last id. */
function longerSide({ src, tgt }: IdPair): number {
  return Math.max(src.length, tgt.length - 1);
}
