/** How late the event loop is. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** The interval of the timer whose lateness is measured, in milliseconds. */
const resolution = 10;

/** Delays of the event loop, in seconds; 0 without a measurement. */
export interface LoopDelays {
  /** That 99 % of the delays do not exceed. */
  readonly p99: number;
  readonly max: number;
}

/** Measures how late a timer comes, which is how long anything else in the process may wait. */
export class LoopDelay {
  readonly #intervals = monitorEventLoopDelay({ resolution });

  constructor() {
    this.#intervals.enable();
  }

  /** The delays since the last call. */
  read(): LoopDelays {
    const intervals = this.#intervals;
    const isEmpty = intervals.count === 0;
    const delays = {
      p99: isEmpty ? 0 : delayOf(intervals.percentile(99)),
      max: isEmpty ? 0 : delayOf(intervals.max),
    };
    intervals.reset();
    return delays;
  }

  /** Ends the timer. */
  close(): void {
    this.#intervals.disable();
  }
}

/** @param interval nanoseconds from one run of the timer to the next, which Node.js records */
function delayOf(interval: number): number {
  return Math.max(0, interval / 1e9 - resolution / 1e3);
}
