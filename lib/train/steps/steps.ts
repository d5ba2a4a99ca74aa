/** One optimizer step on one or more batches, and its outcome. */
import type { Batch } from '../../data/batching/batch.js';
import type { LabelSmoothingOptions } from '../../nn/loss/labelSmoothing.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { clipGradNorm } from '../../optim/clipGradNorm.js';
import type { Schedule } from '../../optim/schedule.js';
import { checkNonNegative } from '../../runtime/arguments.js';
import { autocast, type AutocastDType } from '../../tensor/autocast.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { LossScale } from './lossScale.js';
import { batchLoss } from './tokenLoss.js';
import type { TrainingOptimizer } from '../trainerOptions.js';

/** The outcome of one optimizer step. */
export type StepOutcome = StepCounts &
  (
    | {
        kind: 'taken';
        /** Sum over all target tokens. */
        lossSum: number;
        tokens: number;
        learningRate: number;
        /** Norm of all gradients together, before clipping. */
        gradientNorm: number;
      }
    | {
        kind: 'skipped';
        fault: string;
        /** Whether float16 gradients overflowed: the next step has a smaller loss scale. */
        isOverflow?: boolean;
      }
    | { kind: 'empty' }
  );

/** Number of batches in a step, and of those without a target token. */
export interface StepCounts {
  batches: number;
  empty: number;
}

/** Settings shared by all steps of a training run. */
export interface StepSettings extends Readonly<LabelSmoothingOptions> {
  readonly model: Transformer;
  readonly optimizer: TrainingOptimizer;
  readonly parameters: readonly Tensor[];
  readonly pad: number;
  /** The result of `isPackable` for the model in this epoch. */
  readonly packs: () => boolean;
  readonly dtype: AutocastDType;
  /** Infinity for no clipping. */
  readonly clip: number;
  /** Null if the optimizer keeps its own learning rate. */
  readonly schedule: Schedule | null;
  /** Number of steps taken so far. */
  readonly stepsTaken: () => number;
}

/** Takes steps; outcomes may be returned later than their steps, in order. */
export interface Steps {
  take(batches: readonly Batch[]): Promise<StepOutcome[]>;
  /** Returns the remaining outcomes. */
  finish(): Promise<StepOutcome[]>;
  /** The loss scale of float16 for a checkpoint; null if there is none. */
  readonly lossScale: LossScale | null;
  /** Frees the tensors kept between steps. */
  dispose(): void;
}

/** Selects the batches with a target token: without one, a loss of 0 / 0 would destroy all weights. */
export function usable(batches: readonly Batch[]): {
  full: Batch[];
  counts: StepCounts;
  tokens: number;
} {
  const full = batches.filter(({ ntokens }) => ntokens > 0);
  return {
    full,
    counts: { batches: batches.length, empty: batches.length - full.length },
    tokens: full.reduce((sum, { ntokens }) => sum + ntokens, 0),
  };
}

/** The label smoothing of the steps. */
export function smoothingOf({
  labelSmoothing = 0,
  smoothingForm = 'crossEntropy',
}: StepSettings): Required<LabelSmoothingOptions> {
  return { labelSmoothing, smoothingForm };
}

/** The share of a batch in the loss of a step over `tokens` tokens, times `lossScale`. */
export function lossOf(
  settings: StepSettings,
  batch: Batch,
  tokens: number,
  lossScale = 1,
): Tensor {
  const { model, pad, packs, dtype } = settings;
  const scale = lossScale / tokens;
  return autocast(dtype, () =>
    batchLoss(model, batch, { pad, scale, packs: packs(), ...smoothingOf(settings) }),
  );
}

/**
 * Sets the learning rate of the next step and returns it.
 *
 * @param unreported number of steps taken whose outcome has not been returned yet
 */
export function setRate({ schedule, stepsTaken, optimizer }: StepSettings, unreported = 0): number {
  if (schedule !== null) {
    const step = stepsTaken() + unreported + 1;
    optimizer.lr = checkNonNegative('Trainer.fit', `schedule(${step})`, schedule(step));
  }
  return optimizer.lr;
}

/** @returns a description of what is wrong with a step's numbers; null if they are finite */
export function faultOf(lossSum: number, norm: number): string | null {
  if (!Number.isFinite(lossSum)) return `the loss is ${lossSum}`;
  return Number.isFinite(norm) ? null : `the norm of the gradients is ${norm}`;
}

/** Steps whose numbers are checked immediately, as on the CPU, where they are available. */
export class ImmediateSteps implements Steps {
  readonly lossScale = null;
  readonly #settings: StepSettings;

  constructor(settings: StepSettings) {
    this.#settings = settings;
  }

  async take(batches: readonly Batch[]): Promise<StepOutcome[]> {
    const { full, counts, tokens } = usable(batches);
    if (full.length === 0) return [{ kind: 'empty', ...counts }];
    const { optimizer, parameters, clip } = this.#settings;
    optimizer.zeroGrad();
    let lossSum = 0;
    for (const batch of full) {
      const loss = lossOf(this.#settings, batch, tokens);
      lossSum += loss.item() * tokens;
      const fault = faultOf(lossSum, 0);
      if (fault !== null) return [{ kind: 'skipped', fault, ...counts }];
      await loss.backwardAsync();
    }
    const gradientNorm = clipGradNorm(parameters, clip);
    const fault = faultOf(lossSum, gradientNorm);
    if (fault !== null) return [{ kind: 'skipped', fault, ...counts }];
    const learningRate = setRate(this.#settings);
    await optimizer.stepAsync();
    return [{ kind: 'taken', lossSum, tokens, learningRate, gradientNorm, ...counts }];
  }

  async finish(): Promise<StepOutcome[]> {
    return Promise.resolve([]);
  }

  dispose(): void {
    // Nothing to free.
  }
}
