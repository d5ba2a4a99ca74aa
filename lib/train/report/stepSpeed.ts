import type { StepRecord } from '../run/history.js';

/** The target tokens per second of each step, from its time and that of the step before. */
export class StepSpeed {
  #seconds: number;

  /** @param seconds of training before the first step */
  constructor(seconds: number) {
    this.#seconds = seconds;
  }

  /** NaN if the clock did not advance. */
  next({ tokens, seconds }: Pick<StepRecord, 'tokens' | 'seconds'>): number {
    const duration = seconds - this.#seconds;
    this.#seconds = seconds;
    return duration > 0 ? tokens / duration : NaN;
  }
}
