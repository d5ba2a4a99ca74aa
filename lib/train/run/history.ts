/** What a training run was: one record a step, a validation batch and an epoch. */
import { checkArray, checkObject } from '../../runtime/arguments.js';

/** One optimizer step. */
export interface StepRecord {
  /** Counts from 1 over the whole run. */
  readonly step: number;
  /** Counts from 1. */
  readonly epoch: number;
  /** Mean over the step's target tokens (of all its accumulated batches). */
  readonly loss: number;
  /** Target tokens of the step, padding left out. */
  readonly tokens: number;
  /** The rate that the step was taken with. */
  readonly learningRate: number;
}

/** One validation batch. */
export interface ValidationRecord {
  /** The epoch after whose training it was measured, from 1. */
  readonly epoch: number;
  /** Counts from 1 in the epoch. */
  readonly batch: number;
  /** Mean over the batch's target tokens. */
  readonly loss: number;
  /** Target tokens of the batch, padding left out. */
  readonly tokens: number;
}

/** One pass over the training data. */
export interface EpochRecord {
  /** Counts from 1 over all calls of `fit`. */
  readonly epoch: number;
  /** The run's step count at the end of the epoch. */
  readonly step: number;
  /** Mean over all target tokens of the epoch. */
  readonly trainLoss: number;
  /** The same over the validation data; null without any. */
  readonly validationLoss: number | null;
  /** Target tokens that were trained on, padding left out. */
  readonly trainTokens: number;
  /** Target tokens that were validated on; 0 without validation. */
  readonly validationTokens: number;
  /** Time of the training part. */
  readonly trainSeconds: number;
  /** Time of the validation part; 0 without any. */
  readonly validationSeconds: number;
  /** Batches without a target token: they changed nothing. */
  readonly skippedBatches: number;
  /** Steps left out because of a loss or gradient that was not finite. */
  readonly skippedSteps: number;
  /** Whether this epoch is the best so far. */
  readonly best: boolean;
}

/** All figures of a run, as `history.json` has them. */
export interface History {
  /** One record for each optimizer step that was taken. */
  readonly steps: StepRecord[];
  /** One record for each validation batch with target tokens. */
  readonly validationBatches: ValidationRecord[];
  /** One record for each complete epoch. */
  readonly epochs: EpochRecord[];
}

/**
 * The text of `history.json`. Numbers that JSON lacks are strings: `"NaN"`, `"Infinity"`.
 *
 * @throws TypeError for what is no history
 */
export function historyJson(history: History): string {
  checkHistory('historyJson', history);
  const text = JSON.stringify(history, (_key, value: unknown) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
  // One record a line: readable, and still small.
  return `${text.replaceAll('},{', '},\n{')}\n`;
}

/** @throws TypeError unless it has its lists @internal */
export function checkHistory(owner: string, value: unknown): asserts value is History {
  const history = checkObject(owner, 'history', value, 'the history of a Trainer');
  for (const name of ['steps', 'validationBatches', 'epochs']) {
    checkArray(owner, `history.${name}`, history[name], 'an array');
  }
}
