import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long scoring holds the event loop, in milliseconds. */
const longest = 8;

/** Lets long work on the main thread give way to other work, and stop. */
export class Turns {
  readonly #signal: AbortSignal | undefined;
  #start = performance.now();

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    signal?.throwIfAborted();
  }

  /** Whether it is time for {@link Turns.next}. */
  get isOver(): boolean {
    return performance.now() - this.#start > longest;
  }

  /** Waits for the next turn of the event loop. @throws the reason of the signal once it is aborted */
  async next(): Promise<void> {
    await nextTurn();
    this.#signal?.throwIfAborted();
    this.#start = performance.now();
  }
}
