/** Steps in a row whose loss is that high before something is said: one may be bad luck. */
const patience = 10;

/** Notices once that a loss has exploded: it is far above what guessing gives. */
export class LossWatch {
  readonly #guessing: number;
  #high = 0;
  #hasSpoken = false;

  /** @param vocabSize how many tokens there are to guess from */
  constructor(vocabSize: number) {
    this.#guessing = Math.log(vocabSize);
  }

  /**
   * Takes the loss of a step.
   * @returns a warning, or null
   */
  step(loss: number): string | null {
    this.#high = this.#isHigh(loss) ? this.#high + 1 : 0;
    return this.#high < patience ? null : this.#warning(loss);
  }

  /** Takes the loss of an epoch, which may have few steps. @returns a warning, or null */
  epoch(loss: number): string | null {
    return this.#isHigh(loss) ? this.#warning(loss) : null;
  }

  #isHigh(loss: number): boolean {
    return loss > 2 * this.#guessing;
  }

  #warning(loss: number): string | null {
    if (this.#hasSpoken) return null;
    this.#hasSpoken = true;
    return (
      `warning: the loss is ${loss.toFixed(2)}, and guessing gives ${this.#guessing.toFixed(2)}: it has ` +
      'exploded. Try a smaller learningRate, a warmup or clip'
    );
  }
}
