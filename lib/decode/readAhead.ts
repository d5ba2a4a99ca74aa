/** Reads a source while what came before is being worked on. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Items of a source that yields groups of them. It reads on until `limit` items wait to be taken, and
 * no further, so that memory does not grow with the source.
 */
export class ReadAhead<T> {
  readonly #iterator: AsyncIterator<readonly T[]>;
  readonly #limit: number;
  readonly #items: T[] = [];
  #fault: { readonly error: unknown } | null = null;
  #isEnded = false;
  #isReading = false;
  #wake = (): void => undefined;

  /** Nothing is read before the first {@link take}. */
  constructor(source: AsyncIterable<readonly T[]>, limit: number) {
    this.#iterator = source[Symbol.asyncIterator]();
    this.#limit = limit;
  }

  /**
   * The next items: those that have arrived, at most `count`; waits for the first. Empty at the end.
   *
   * @throws the error of the source, after all items before it; the signal's reason after an abort
   */
  async take(count: number, signal?: AbortSignal): Promise<T[]> {
    signal?.throwIfAborted();
    void this.#read();
    const abort = () => this.#wake();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      while (this.#items.length === 0 && !this.#isEnded) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        signal?.throwIfAborted();
      }
    } finally {
      signal?.removeEventListener('abort', abort);
    }
    // What the source has at hand comes together.
    if (this.#items.length < count && !this.#isEnded) await nextTurn();
    signal?.throwIfAborted();
    if (this.#items.length === 0 && this.#fault !== null) throw this.#fault.error;
    const taken = this.#items.splice(0, count);
    void this.#read();
    return taken;
  }

  /** Closes the source; one that is waiting for its own input closes when that comes. */
  async close(): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const closing = Promise.resolve(this.#iterator.return?.()).catch(() => undefined);
    if (!this.#isReading) await closing;
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#isEnded && this.#items.length < this.#limit) {
        const next = await this.#iterator.next();
        if (next.done === true) this.#isEnded = true;
        else for (const item of next.value) this.#items.push(item);
        this.#wake();
      }
    } catch (error) {
      this.#fault = { error };
      this.#isEnded = true;
      this.#wake();
    } finally {
      this.#isReading = false;
    }
  }
}
