/** The time of training steps. */
import type { TrainingListener } from 'torchformer';

/** Records how long each step took. */
export class StepClock implements TrainingListener {
  /** Since {@link start}. */
  seconds: number[] = [];
  #last = NaN;
  readonly #settle: () => void;

  /** @param settle waits at the end of each step for pending computation */
  constructor(settle: () => void = () => undefined) {
    this.#settle = settle;
  }

  start(): void {
    this.#settle();
    this.seconds = [];
    this.#last = performance.now();
  }

  step(): void {
    this.#settle();
    const now = performance.now();
    this.seconds.push((now - this.#last) / 1000);
    this.#last = now;
  }
}
