/** Training metrics: token means and the best epoch. */
import { checkInteger, checkNumber, checkObject } from '../runtime/arguments.js';

/** The mean loss per token over batches of different sizes. */
export class TokenMean {
  #lossSum = 0;
  #tokens = 0;

  /**
   * @param lossSum the batch's loss, summed over its tokens
   * @param tokens number of target tokens in the batch
   * @throws TypeError, RangeError if `lossSum` is not a number, or `tokens` is not a count
   */
  add(lossSum: number, tokens: number): void {
    checkNumber('TokenMean.add', 'lossSum', lossSum);
    checkInteger('TokenMean.add', 'tokens', tokens, 0);
    this.#lossSum += lossSum;
    this.#tokens += tokens;
  }

  /** Target tokens so far. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Sum of the losses so far. */
  get sum(): number {
    return this.#lossSum;
  }

  /** Sum of losses divided by sum of tokens; NaN before the first token. */
  get mean(): number {
    return this.#lossSum / this.#tokens;
  }
}

/** The epoch with the lowest loss so far. */
export interface BestEpoch {
  /** Counts from 1. */
  readonly epoch: number;
  /** Validation loss, mean over all target tokens of the epoch. */
  readonly loss: number;
}

/**
 * Picks the best epoch by its token-mean loss. A loss that is not finite is never best; of equal
 * losses, the earlier epoch is kept.
 */
export class BestModel {
  #best: BestEpoch | null;

  /**
   * @param best from an earlier run that is continued; default none
   * @throws TypeError, RangeError if `best` has no valid epoch and loss
   */
  constructor(best: BestEpoch | null = null) {
    if (best !== null) {
      const { epoch, loss } = checkObject('BestModel', 'best', best, '{ epoch, loss } or null');
      checkInteger('BestModel', 'best.epoch', epoch, 1);
      checkNumber('BestModel', 'best.loss', loss);
    }
    this.#best = best;
  }

  /** The best epoch so far, null if no loss was finite yet. */
  get best(): BestEpoch | null {
    return this.#best;
  }

  /**
   * Records an epoch's loss; returns true if it is the new best.
   *
   * @param epoch counts from 1
   * @param loss validation loss, the token mean; it may be NaN
   * @throws TypeError, RangeError if `epoch` is not a positive integer or `loss` is not a number
   */
  consider(epoch: number, loss: number): boolean {
    checkInteger('BestModel.consider', 'epoch', epoch, 1);
    checkNumber('BestModel.consider', 'loss', loss);
    if (!this.isBetter(loss)) return false;
    this.#best = { epoch, loss };
    return true;
  }

  /** Whether an epoch with this loss would be the new best. @throws TypeError if it is not a number */
  isBetter(loss: number): boolean {
    checkNumber('BestModel.isBetter', 'loss', loss);
    return Number.isFinite(loss) && (this.#best === null || loss < this.#best.loss);
  }
}
