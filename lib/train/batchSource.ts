/** Where the batches of an epoch come from. */
import { describe } from '../runtime/options.js';
import type { Batch } from '../data/batch.js';

/** Batches of one epoch, in order. */
export type BatchIterable = Iterable<Batch> | AsyncIterable<Batch>;

/**
 * Batches for any number of epochs: an array or another iterable that can be run through again,
 * or a function of the epoch (counted from 1), for an order of its own in each.
 */
export type BatchSource = BatchIterable | ((epoch: number) => BatchIterable);

/** The batches of one epoch, taken one or several at a time. */
export class BatchReader {
  readonly #iterator: Iterator<Batch> | AsyncIterator<Batch>;
  /** How many there are, where the source says so (`length`). */
  readonly length: number | null;

  /** @throws TypeError if the source gives nothing to iterate over */
  constructor(owner: string, source: BatchSource, epoch: number) {
    const batches = typeof source === 'function' ? source(epoch) : source;
    const { length } = batches as { length?: unknown };
    this.length = typeof length === 'number' ? length : null;
    if (typeof batches === 'object' && Symbol.asyncIterator in batches) {
      this.#iterator = batches[Symbol.asyncIterator]();
    } else if (typeof batches === 'object' && Symbol.iterator in batches) {
      this.#iterator = batches[Symbol.iterator]();
    } else {
      throw new TypeError(
        `${owner}: the batches must be an iterable or a function that returns one, got ${describe(batches)}`,
      );
    }
  }

  /** The next `count` batches, fewer at the end, none behind it. */
  async take(count: number): Promise<Batch[]> {
    const taken: Batch[] = [];
    while (taken.length < count) {
      const result = await this.#iterator.next();
      if (result.done === true) break;
      taken.push(result.value);
    }
    return taken;
  }

  /** Tells the source that no more batches are wanted, so that it can close its files. */
  async close(): Promise<void> {
    await this.#iterator.return?.();
  }
}
