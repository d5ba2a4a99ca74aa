import { checkBoolean, checkInstance, checkInteger, checkOptions } from '../runtime/options.js';
import { checkDevice, type Device } from '../tensor/device.js';
import { makeBatch, type Batch } from './batch.js';
import { TranslationDataset, type TokenPair } from './dataset.js';
import { SeededRandom } from './seededRandom.js';

/** Options of {@link batches}. */
export interface BatchOptions {
  /** Pairs in a batch; the last one may have fewer. Default 50, as in seed 001. */
  batchSize?: number | undefined;
  /** Whether the order is random. Default false. */
  shuffle?: boolean | undefined;
  /** Decides the random order, together with `epoch` and nothing else. Default 0. */
  seed?: number | undefined;
  /** Gives each pass over the data an order of its own. Default 0. */
  epoch?: number | undefined;
  /**
   * Puts pairs of similar length in a batch, which saves padding: the pairs, in their (random)
   * order, are sorted by length within pools of this many batches, and then the order of the
   * batches is random. `true` means 100. Default false.
   */
  bucket?: boolean | number | undefined;
  /** Where the tensors are. Default `'cpu'`. */
  device?: Device | undefined;
}

/** The batches of one pass. Each loop over it makes fresh tensors, which the caller disposes. */
export interface Batches extends Iterable<Batch> {
  /** Number of batches. */
  readonly length: number;
}

const defaultPool = 100;

/**
 * Puts a dataset in batches.
 *
 * ```ts
 * for (const batch of batches(dataset, { shuffle: true, seed: 1, epoch })) {
 *   …
 *   batch.dispose();
 * }
 * ```
 *
 * @throws TypeError, RangeError for what is no dataset, and for a fault in the options
 */
export function batches(dataset: TranslationDataset, options: BatchOptions = {}): Batches {
  const owner = 'batches';
  const names = ['batchSize', 'shuffle', 'seed', 'epoch', 'bucket', 'device'];
  const wayOut = 'TranslationDataset.fromPairs or fromFile';
  checkInstance(owner, 'dataset', dataset, TranslationDataset, wayOut);
  checkOptions(owner, options, names);
  const { batchSize = 50, shuffle = false, seed = 0, epoch = 0, bucket = false } = options;
  checkInteger(owner, 'batchSize', batchSize, 1);
  checkInteger(owner, 'seed', seed, 0);
  checkInteger(owner, 'epoch', epoch, 0);
  checkBoolean(owner, 'shuffle', shuffle);
  if (options.device !== undefined) checkDevice(owner, 'device', options.device);
  const pool = bucket === true ? defaultPool : bucket === false ? 0 : bucket;
  checkInteger(owner, 'bucket', pool, 0);
  const random = shuffle ? new SeededRandom(seed, epoch) : null;
  const groups = groupPairs(dataset.pairs, batchSize, pool, random);
  return {
    length: groups.length,
    *[Symbol.iterator]() {
      for (const group of groups) yield makeBatch(group, dataset.specialIds.pad, options.device);
    },
  };
}

function groupPairs(
  pairs: readonly TokenPair[],
  batchSize: number,
  pool: number,
  random: SeededRandom | null,
): TokenPair[][] {
  const order = [...pairs];
  random?.shuffle(order);
  if (pool > 0) {
    const sorted = slices(order, pool * batchSize).flatMap((part) => part.sort(byLength));
    const groups = slices(sorted, batchSize);
    return random === null ? groups : random.shuffle(groups);
  }
  return slices(order, batchSize);
}

/** The target first: its length costs most, in the decoder and before the softmax. */
function byLength(a: TokenPair, b: TokenPair): number {
  return a.tgt.length - b.tgt.length || a.src.length - b.src.length;
}

function slices<T>(list: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let start = 0; start < list.length; start += size)
    parts.push(list.slice(start, start + size));
  return parts;
}
