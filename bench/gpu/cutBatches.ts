/** Batches of the sizes on a GPU. */
import { SeededRandom } from 'torchformer';
import type { IdPair } from '../trainJob.js';
import type { GpuSize } from './gpuSizes.js';

/**
 * The first `count` batches of the pairs.
 *
 * @throws Error when the pairs do not make so many
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

/** Full batches of pairs of like length, in a random order, the same at every call. */
function byTokens(pairs: readonly IdPair[], tokens: number): IdPair[][] {
  const sorted = [...pairs].sort((a, b) => longerSide(a) - longerSide(b));
  const batches: IdPair[][] = [];
  let batch: IdPair[] = [];
  for (const pair of sorted) {
    // Sorted, so this pair is the longest of the batch: padding counts as tokens do.
    if ((batch.length + 1) * longerSide(pair) > tokens) {
      batches.push(batch);
      batch = [];
    }
    batch.push(pair);
  }
  new SeededRandom(1).shuffle(batches);
  return batches;
}

/** Positions that the pair takes: all of its source, its target without the last id. */
function longerSide({ src, tgt }: IdPair): number {
  return Math.max(src.length, tgt.length - 1);
}
