/** One optimizer step from a few batches, and what comes of it. */
import type { Batch } from '../../data/batching/batch.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { clipGradNorm } from '../../optim/clipGradNorm.js';
import type { Schedule } from '../../optim/schedule.js';
import { checkNonNegative } from '../../runtime/arguments.js';
import { autocast, type AutocastDType } from '../../tensor/autocast.js';
import type { Tensor } from '../../tensor/tensor.js';
import { batchLoss } from './tokenLoss.js';
import type { TrainingOptimizer } from '../trainerOptions.js';

/** What one optimizer step came to. */
export type StepOutcome = StepCounts &
  (
    | {
        kind: 'taken';
        /** Over all target tokens. */
        lossSum: number;
        tokens: number;
        learningRate: number;
      }
    | {
        kind: 'skipped';
        fault: string;
        /** Gradients of float16 that overflowed: the next step has a smaller loss scale. */
        isOverflow?: boolean;
      }
    | { kind: 'empty' }
  );

/** Batches that a step had, and those of them without a target token. */
export interface StepCounts {
  batches: number;
  empty: number;
}

/** What all steps of a training have in common. */
export interface StepSettings {
  readonly model: Transformer;
  readonly optimizer: TrainingOptimizer;
  readonly parameters: readonly Tensor[];
  readonly pad: number;
  /** What `isPackable` says of the model in this epoch. */
  readonly packs: () => boolean;
  readonly dtype: AutocastDType;
  /** Infinity: none */
  readonly clip: number;
  /** Null: the optimizer keeps the rate that it came with. */
  readonly schedule: Schedule | null;
  /** Number of steps taken so far. */
  readonly stepsTaken: () => number;
}

/** Takes steps; outcomes may come later than their steps, in order. */
export interface Steps {
  take(batches: readonly Batch[]): Promise<StepOutcome[]>;
  /** What is still to come. */
  finish(): Promise<StepOutcome[]>;
  /** Frees what the steps keep for each other. */
  dispose(): void;
}

/** Batches with a target token: without one there is no loss, and 0 / 0 would destroy every weight. */
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

/** The loss of a batch as its part of a step over `tokens` tokens, times `lossScale`. */
export function lossOf(
  { model, pad, packs, dtype }: StepSettings,
  batch: Batch,
  tokens: number,
  lossScale = 1,
): Tensor {
  const settings = { pad, scale: lossScale / tokens, packs: packs() };
  return autocast(dtype, () => batchLoss(model, batch, settings));
}

/**
 * Sets the rate of the step that comes next; returns the rate in force.
 *
 * @param unreported steps that were taken and not told of yet
 */
export function setRate({ schedule, stepsTaken, optimizer }: StepSettings, unreported = 0): number {
  if (schedule !== null) {
    const step = stepsTaken() + unreported + 1;
    optimizer.lr = checkNonNegative('Trainer.fit', `schedule(${step})`, schedule(step));
  }
  return optimizer.lr;
}

/** @returns what is wrong with a step's numbers, null if nothing is */
export function faultOf(lossSum: number, norm: number): string | null {
  if (!Number.isFinite(lossSum)) return `the loss is ${lossSum}`;
  return Number.isFinite(norm) ? null : `the norm of the gradients is ${norm}`;
}

/** Steps whose numbers are looked at on the way, as on the CPU, where they are at hand. */
export class ImmediateSteps implements Steps {
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
    const fault = faultOf(lossSum, clipGradNorm(parameters, clip));
    if (fault !== null) return [{ kind: 'skipped', fault, ...counts }];
    const learningRate = setRate(this.#settings);
    await optimizer.stepAsync();
    return [{ kind: 'taken', lossSum, tokens, learningRate, ...counts }];
  }

  async finish(): Promise<StepOutcome[]> {
    return Promise.resolve([]);
  }

  dispose(): void {
    // Nothing is kept.
  }
}
