import type { StepRecord } from '../run/history.js';

/** The target tokens per second of each step, from its time and that of the step before. */
export class StepSpeed {
  #seconds: number;

  /** @param seconds of training before the first step */
  constructor(seconds: number) {
    this.#seconds = seconds;
  }

  /** Leaves out the time of a validation between two steps. */
  pause(seconds: number): void {
    this.#seconds += seconds;
  }

  /** NaN if the clock did not advance. */
  next({ tokens, seconds }: Pick<StepRecord, 'tokens' | 'seconds'>): number {
    const duration = seconds - this.#seconds;
    this.#seconds = seconds;
    return duration > 0 ? tokens / duration : NaN;
  }
}
