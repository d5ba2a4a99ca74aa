/** How far a run is: plain numbers, which a checkpoint holds as JSON. */
import { createHash } from 'node:crypto';
import type { Batch } from '../../data/batching/batch.js';
import { TorchError } from '../../runtime/errors.js';
import type { BatchReader } from '../batchSource.js';
import { inScope } from '../inScope.js';
import { BestModel, TokenMean, type BestEpoch } from '../metrics.js';
import { LossWatch, type LossWatchState } from '../lossWatch.js';
import type { ValidationRecord } from './history.js';

/** What decides which validation is the best: the lowest loss, or the highest score. */
export type Selection = 'loss' | 'bleu' | 'chrf';

/** The best validation so far. */
export interface BestValidation extends BestEpoch {
  /** The run's step count when it was measured. */
  readonly step: number;
  /** What it was selected by: its loss, BLEU or chrF. */
  readonly value: number;
}

/** The part of an epoch that is done. */
export interface EpochSoFar {
  readonly mean: TokenMean;
  /** Batches trained on. */
  batch: number;
  /** Those whose outcome is known: on a GPU, one step fewer. */
  reported: number;
  emptyBatches: number;
  skippedSteps: number;
  /** Seconds of training. */
  seconds: number;
  /** Identifies the batches processed and their order. */
  digest: string;
}

/** {@link RunProgress} as JSON. */
export type RunProgressState = {
  readonly step: number;
  readonly epoch: number;
  readonly seconds: number;
  readonly soFar: {
    readonly lossSum: number | string;
    readonly tokens: number;
    readonly batch: number;
    readonly emptyBatches: number;
    readonly skippedSteps: number;
    readonly seconds: number;
    readonly digest: string;
  };
  readonly best: BestValidation | null;
  readonly validationsSinceBest: number;
  readonly validatedAt: number;
  readonly lossWatch: LossWatchState;
};

/** Counts of a run and of its current epoch. */
export class RunProgress {
  /** Optimizer steps taken. */
  step = 0;
  /** Complete epochs. */
  epoch = 0;
  /** Seconds of training, validation and waiting for saves, over all parts of a resumed run. */
  seconds = 0;
  /** The epoch that is being trained. */
  soFar: EpochSoFar = newEpoch();
  best: BestValidation | null = null;
  /** Validations since the best one. */
  validationsSinceBest = 0;
  /** The step of the latest validation; 0 before the first. */
  validatedAt = 0;
  readonly lossWatch: LossWatch;

  readonly #select: Selection;

  /** @param vocabSize number of tokens in the vocabulary */
  constructor(vocabSize: number, select: Selection) {
    this.lossWatch = new LossWatch(vocabSize);
    this.#select = select;
  }

  /** Whether a validation is the best so far; it then counts as that. */
  consider(validation: Pick<ValidationRecord, 'step' | 'epoch' | Selection>): boolean {
    const { step, epoch, loss } = validation;
    const value = validation[this.#select] ?? NaN;
    const lowest = new BestModel(this.best && { epoch, loss: this.#cost(this.best.value) });
    if (!lowest.isBetter(this.#cost(value))) {
      this.validationsSinceBest++;
      return false;
    }
    this.validationsSinceBest = 0;
    this.best = { epoch, step, loss, value };
    return true;
  }

  #cost(value: number): number {
    return this.#select === 'loss' ? value : -value;
  }

  /** The digest of the epoch's batches if these come next. */
  digestAfter(batches: readonly Batch[]): string {
    return batches.reduce(digestAfter, this.soFar.digest);
  }

  /** Records batches of the current epoch. */
  passed(count: number, digest: string): void {
    this.soFar.batch += count;
    this.soFar.digest = digest;
  }

  /**
   * Passes over the batches of the epoch that were trained on.
   * @throws TorchError ERR_CHECKPOINT if they are not the same, in the same order
   */
  async skip(batches: BatchReader): Promise<void> {
    const { batch, digest } = this.soFar;
    let found = '';
    let count = 0;
    for (; count < batch; count++) {
      const isThere = await inScope(async () => {
        const [next] = await batches.take(1);
        if (next !== undefined) found = digestAfter(found, next);
        return next !== undefined;
      });
      if (!isThere) break;
    }
    if (found === digest) return;
    const reason =
      count < batch
        ? `it has only ${count} batches`
        : `its first ${batch} batches are not those that it was trained on`;
    throw new TorchError(
      'ERR_CHECKPOINT',
      `Trainer.fit: epoch ${this.epoch + 1} cannot be continued at batch ${batch + 1}: ${reason}. Use the ` +
        'data, the order and the seed that the run was started with',
    );
  }

  finishEpoch(): void {
    this.epoch++;
    this.soFar = newEpoch();
  }

  toJson(): RunProgressState {
    const { step, epoch, seconds, soFar, validationsSinceBest, validatedAt } = this;
    const { mean, reported: _, ...counts } = soFar;
    return {
      step,
      epoch,
      seconds,
      soFar: { lossSum: jsonNumber(mean.sum), tokens: mean.tokens, ...counts },
      best: this.best,
      validationsSinceBest,
      validatedAt,
      lossWatch: this.lossWatch.state,
    };
  }

  /** Continues at a saved state. */
  restore(state: RunProgressState): void {
    const { lossSum, tokens, ...counts } = state.soFar;
    this.step = state.step;
    this.epoch = state.epoch;
    this.seconds = state.seconds;
    this.soFar = { mean: new TokenMean(), reported: counts.batch, ...counts };
    if (tokens > 0) this.soFar.mean.add(Number(lossSum), tokens);
    this.best = state.best;
    this.validationsSinceBest = state.validationsSinceBest;
    this.validatedAt = state.validatedAt;
    this.lossWatch.state = state.lossWatch;
  }
}

function newEpoch(): EpochSoFar {
  return {
    mean: new TokenMean(),
    batch: 0,
    reported: 0,
    emptyBatches: 0,
    skippedSteps: 0,
    seconds: 0,
    digest: '',
  };
}

/** A digest of batches in order: a resumed run must pass the same ones. */
export function digestAfter(before: string, batch: Batch): string {
  const hash = createHash('sha1').update(before);
  for (const ids of [batch.src, batch.tgtY]) {
    hash.update(ids.shape.join('x'));
    // Reading from a GPU would wait for it; there, the number of pairs and tokens must do.
    if (ids.device === 'cpu') hash.update(ids.bytes());
  }
  return hash.update(String(batch.ntokens)).digest('hex');
}

/** JSON has no NaN and no infinities. */
function jsonNumber(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}
