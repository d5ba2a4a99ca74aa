import {
  checkBoolean,
  checkInstance,
  checkInteger,
  checkOptions,
} from '../../runtime/arguments.js';
import { checkDevice, type DeviceChoice } from '../../tensor/device.js';
import { makeBatch } from './batch.js';
import { TranslationDataset } from '../dataset.js';
import type { TokenPair } from '../pairs.js';
import { passesByEpoch, passesOver, type Batches } from './passes.js';
import { SeededRandom } from './seededRandom.js';

export type { Batches } from './passes.js';

/** Options of {@link batches}. */
export interface BatchOptions {
  /** Number of pairs in a batch; the last one may have fewer. Default 50, as in seed 001. */
  batchSize?: number | undefined;
  /**
   * Instead of `batchSize`: the maximum number of tokens in a batch on either side, as the paper
   * counts its 25,000. For a source this includes bos and eos; for a target it is the predicted
   * tokens, all ids but the first. Each batch takes the next pairs until one more would not fit, so
   * all batches cost about the same; a pair with more tokens forms its own batch.
   *
   * fairseq's `--max-tokens` and JoeyNMT's `batch_type: token` limit both sides as well, but count
   * padding: the longest sequence times the number of pairs. Here padding is not counted, because
   * training on the CPU has none; on other devices, `bucket` keeps it small.
   */
  tokens?: number | undefined;
  /** Whether the order is random, and different in each pass. Default false. */
  shuffle?: boolean | undefined;
  /** Determines the random orders, together with only the number of the pass. Default 0. */
  seed?: number | undefined;
  /**
   * The number of the first pass: the next loops over the same batches have `epoch + 1`, `epoch + 2`,
   * … Default 0; if it is not given, `Trainer.fit` and `evaluate` use their own epoch numbers, so
   * that training continues with new orders after a restart.
   */
  epoch?: number | undefined;
  /**
   * Batches pairs of similar length, which saves padding: the pairs, in their (random)
   * order, are sorted by length within pools of this many batches, and then the order of the
   * batches is random (with `shuffle`). `true` means 100. Default false.
   */
  bucket?: boolean | number | undefined;
  /** The device of the tensors. Default `'cpu'`. */
  device?: DeviceChoice | undefined;
}

const defaultPool = 100;
const defaultBatchSize = 50;

/**
 * Divides a dataset into batches.
 *
 * ```ts
 * const shuffled = batches(dataset, { shuffle: true, seed: 1 });
 * for (let epoch = 0; epoch < 3; epoch++) {
 *   for (const batch of shuffled) {
 *     …
 *     batch.dispose();
 *   }
 * }
 * ```
 *
 * @throws TypeError, RangeError if `dataset` is not a TranslationDataset, or for invalid options
 */
export function batches(dataset: TranslationDataset, options: BatchOptions = {}): Batches {
  const owner = 'batches';
  const names = ['batchSize', 'tokens', 'shuffle', 'seed', 'epoch', 'bucket', 'device'];
  const constructedBy = 'TranslationDataset.fromPairs or fromFile';
  checkInstance(owner, 'dataset', dataset, TranslationDataset, constructedBy);
  checkOptions(owner, options, names);
  const { batchSize, tokens, shuffle = false, seed = 0, epoch = 0, bucket = false } = options;
  if (batchSize !== undefined) checkInteger(owner, 'batchSize', batchSize, 1);
  if (tokens !== undefined) checkInteger(owner, 'tokens', tokens, 1);
  if (batchSize !== undefined && tokens !== undefined) {
    throw new TypeError(
      `${owner}: batchSize and tokens are mutually exclusive, got ${batchSize} and ${tokens}`,
    );
  }
  checkInteger(owner, 'seed', seed, 0);
  checkInteger(owner, 'epoch', epoch, 0);
  checkBoolean(owner, 'shuffle', shuffle);
  if (options.device !== undefined) checkDevice(owner, 'device', options.device);
  const pool = bucket === true ? defaultPool : bucket === false ? 0 : bucket;
  checkInteger(owner, 'bucket', pool, 0);
  const split: Split =
    tokens === undefined
      ? (pairs) => slices(pairs, batchSize ?? defaultBatchSize)
      : (pairs) => fitted(pairs, tokens);
  const { pairs, specialIds } = dataset;
  const make = (group: readonly TokenPair[]) => makeBatch(group, specialIds.pad, options.device);
  if (!shuffle) {
    const groups = groupPairs(pairs, split, pool, null);
    return passesOver(() => groups, make, epoch);
  }
  const groupsOf = (pass: number) => groupPairs(pairs, split, pool, new SeededRandom(seed, pass));
  return options.epoch === undefined
    ? passesByEpoch(groupsOf, make)
    : passesOver(groupsOf, make, epoch);
}

/** Splits pairs into batches, keeping their order. */
type Split = (pairs: readonly TokenPair[]) => TokenPair[][];

function groupPairs(
  pairs: readonly TokenPair[],
  split: Split,
  pool: number,
  random: SeededRandom | null,
): TokenPair[][] {
  const order = [...pairs];
  random?.shuffle(order);
  const unsorted = split(order);
  if (pool === 0) return unsorted;
  // No batch crosses the end of a pool: it would mix the longest pairs with the shortest.
  const groups = slices(unsorted, pool).flatMap((part) => split(part.flat().sort(byLength)));
  return random === null ? groups : random.shuffle(groups);
}

/** By target length first: it costs the most, in the decoder and the output projection. */
function byLength(a: TokenPair, b: TokenPair): number {
  return a.tgt.length - b.tgt.length || a.src.length - b.src.length;
}

/** As many pairs per batch as have at most `tokens` tokens on either side, but at least one. */
function fitted(pairs: readonly TokenPair[], tokens: number): TokenPair[][] {
  const parts: TokenPair[][] = [];
  let part: TokenPair[] = [];
  let sources = 0;
  let targets = 0;
  for (const pair of pairs) {
    sources += pair.src.length;
    targets += pair.tgt.length - 1;
    if (part.length === 0 || sources > tokens || targets > tokens) {
      part = [];
      parts.push(part);
      sources = pair.src.length;
      targets = pair.tgt.length - 1;
    }
    part.push(pair);
  }
  return parts;
}

function slices<T>(list: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let start = 0; start < list.length; start += size)
    parts.push(list.slice(start, start + size));
  return parts;
}
