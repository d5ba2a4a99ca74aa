/** Where the batches of an epoch come from. */
import { TranslationDataset } from '../data/dataset.js';
import { describe, isIterable } from '../runtime/arguments.js';
import type { Batch } from '../data/batching/batch.js';
import { inEpoch } from '../data/batching/passes.js';
import { checkBatch } from './steps/checkBatch.js';

/** Batches of one epoch, in order. */
export type BatchIterable = Iterable<Batch> | AsyncIterable<Batch>;

/**
 * Batches for any number of epochs: `batches(dataset, …)`, which with `shuffle` have an order of
 * their own in each; an array, whose order stays, or another iterable that can be run through again;
 * or a function of the epoch (counted from 1) that returns one of these.
 */
export type BatchSource = BatchIterable | ((epoch: number) => BatchIterable);

/**
 * @param name of the parameter or option: `'validation'`
 * @throws TypeError for what is no source of batches, with the way out for a dataset
 */
export function checkBatchSource(owner: string, name: string, source: unknown): void {
  if (typeof source !== 'function') checkIterable(owner, name, source);
}

function checkIterable(owner: string, name: string, value: unknown, given = ''): void {
  if (isIterable(value) && !(value instanceof TranslationDataset)) return;
  const wayOut =
    value instanceof TranslationDataset
      ? '; put it in batches: batches(dataset, { shuffle: true })'
      : value instanceof Promise
        ? '; await it first'
        : '';
  throw new TypeError(
    `${owner}: ${name} must be an iterable of batches or a function that returns one, ` +
      `got ${given}${describe(value)}${wayOut}`,
  );
}

/** The batches of one epoch, taken one or several at a time. */
export class BatchReader {
  readonly #iterator: Iterator<Batch> | AsyncIterator<Batch>;
  readonly #owner: string;
  readonly #name: string;
  #taken = 0;
  /** How many there are, where the source says so (`length`). */
  readonly length: number | null;

  /**
   * @param name of the parameter or option that the source came in
   * @throws TypeError if the source gives nothing to iterate over
   */
  constructor(owner: string, name: string, source: BatchSource, epoch: number) {
    checkBatchSource(owner, name, source);
    const given = typeof source === 'function' ? source(epoch) : source;
    if (typeof source === 'function') {
      checkIterable(owner, name, given, `a function that returned `);
    }
    const batches = inEpoch(given, epoch);
    this.#owner = owner;
    this.#name = name;
    this.#iterator =
      Symbol.asyncIterator in batches
        ? batches[Symbol.asyncIterator]()
        : batches[Symbol.iterator]();
    // Behind the iterator: passes may differ in their length.
    const { length } = batches as { length?: unknown };
    this.length = typeof length === 'number' ? length : null;
  }

  /**
   * The next `count` batches, fewer at the end, none behind it.
   * @throws TypeError, RangeError for what is no batch
   */
  async take(count: number): Promise<Batch[]> {
    const taken: Batch[] = [];
    while (taken.length < count) {
      const result = await this.#iterator.next();
      if (result.done === true) break;
      checkBatch(this.#owner, `batch ${++this.#taken} of ${this.#name}`, result.value);
      taken.push(result.value);
    }
    return taken;
  }

  /** Tells the source that no more batches are wanted, so that it can close its files. */
  async close(): Promise<void> {
    await this.#iterator.return?.();
  }
}
