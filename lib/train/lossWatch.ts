/** Consecutive steps with a high loss before a warning: a single one may be an outlier. */
const patience = 10;

/** State of a {@link LossWatch} for a checkpoint. */
export interface LossWatchState {
  readonly high: number;
  readonly hasWarned: boolean;
}

/** Warns once when the loss has exploded, that is, is far above the loss of uniform guessing. */
export class LossWatch {
  readonly #guessing: number;
  #high = 0;
  #hasWarned = false;

  /** @param vocabSize number of tokens in the vocabulary */
  constructor(vocabSize: number) {
    this.#guessing = Math.log(vocabSize);
  }

  get state(): LossWatchState {
    return { high: this.#high, hasWarned: this.#hasWarned };
  }

  set state({ high, hasWarned }: LossWatchState) {
    this.#high = high;
    this.#hasWarned = hasWarned;
  }

  /**
   * Records the loss of a step.
   * @returns a warning, or null
   */
  step(loss: number): string | null {
    this.#high = this.#isHigh(loss) ? this.#high + 1 : 0;
    return this.#high < patience ? null : this.#warning(loss);
  }

  /** Records the loss of an epoch, which may have few steps. @returns a warning, or null */
  epoch(loss: number): string | null {
    return this.#isHigh(loss) ? this.#warning(loss) : null;
  }

  #isHigh(loss: number): boolean {
    return loss > 2 * this.#guessing;
  }

  #warning(loss: number): string | null {
    if (this.#hasWarned) return null;
    this.#hasWarned = true;
    return (
      `warning: the loss is ${loss.toFixed(2)}, but guessing gives ${this.#guessing.toFixed(2)}: it has ` +
      'exploded. Try a smaller learningRate, a warmup or clip'
    );
  }
}
