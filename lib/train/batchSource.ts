/** Sources of the batches of an epoch. */
import { TranslationDataset } from '../data/dataset.js';
import { describe, isIterable } from '../runtime/arguments.js';
import type { Batch } from '../data/batching/batch.js';
import { inEpoch } from '../data/batching/passes.js';
import { checkBatch } from './steps/checkBatch.js';

/** Batches of one epoch, in order. */
export type BatchIterable = Iterable<Batch> | AsyncIterable<Batch>;

/**
 * Batches for any number of epochs: `batches(dataset, …)`, which with `shuffle` are reordered in each
 * epoch; an array, whose order is fixed, or another iterable that can be iterated repeatedly; or a
 * function of the epoch (counted from 1) that returns one of these.
 */
export type BatchSource = BatchIterable | ((epoch: number) => BatchIterable);

/**
 * @param name name of the parameter or option, such as `'validation'`
 * @throws TypeError if `source` is not a source of batches; for a dataset the message includes the fix
 */
export function checkBatchSource(owner: string, name: string, source: unknown): void {
  if (typeof source !== 'function') checkIterable(owner, name, source);
}

function checkIterable(owner: string, name: string, value: unknown, given = ''): void {
  if (isIterable(value) && !(value instanceof TranslationDataset)) return;
  const fix =
    value instanceof TranslationDataset
      ? '; split it into batches: batches(dataset, { shuffle: true })'
      : value instanceof Promise
        ? '; await it first'
        : '';
  throw new TypeError(
    `${owner}: ${name} must be an iterable of batches or a function that returns one, ` +
      `got ${given}${describe(value)}${fix}`,
  );
}

/** The batches of one epoch, taken one or several at a time. */
export class BatchReader {
  readonly #iterator: Iterator<Batch> | AsyncIterator<Batch>;
  readonly #owner: string;
  readonly #name: string;
  #taken = 0;
  /** Number of batches, if the source has a `length`; null otherwise. */
  readonly length: number | null;

  /**
   * @param name name of the parameter or option that holds the source
   * @throws TypeError if the source is not iterable
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
    // Read after the iterator is created: passes may differ in length.
    const { length } = batches as { length?: unknown };
    this.length = typeof length === 'number' ? length : null;
  }

  /**
   * Returns the next `count` batches: fewer at the end, none after it.
   * @throws TypeError, RangeError if an item is not a batch
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

  /** Closes the iterator, so that the source can close its files. */
  async close(): Promise<void> {
    await this.#iterator.return?.();
  }
}
