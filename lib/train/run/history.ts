/** The history of a training run: one record per step, validation batch and epoch. */
import { checkArray, checkObject } from '../../runtime/arguments.js';

/** One optimizer step. */
export interface StepRecord {
  /** Counts from 1 over the whole run. */
  readonly step: number;
  /** Counts from 1. */
  readonly epoch: number;
  /** Mean over the step's target tokens (of all its accumulated batches). */
  readonly loss: number;
  /** Target tokens of the step, excluding padding. */
  readonly tokens: number;
  /** The learning rate of the step. */
  readonly learningRate: number;
  /** Norm of all gradients together, before clipping. */
  readonly gradientNorm: number;
  /** Seconds of training up to the end of the step, over all parts of a run that was resumed. */
  readonly seconds: number;
}

/** One batch of the validation data. */
export interface ValidationBatchRecord {
  /** The epoch after which it was measured; counts from 1. */
  readonly epoch: number;
  /** Counts from 1 within the epoch. */
  readonly batch: number;
  /** Mean over the batch's target tokens. */
  readonly loss: number;
  /** Target tokens of the batch, excluding padding. */
  readonly tokens: number;
}

/** One pass over the validation data. */
export interface ValidationRecord {
  /** The run's step count when it was measured. */
  readonly step: number;
  /** The epoch in which it was measured; counts from 1. */
  readonly epoch: number;
  /** Mean over all target tokens, without label smoothing. */
  readonly loss: number;
  /** exp(loss): the number of equally likely words that the model hesitates between. */
  readonly perplexity: number;
  /**
   * Fraction of the targets that have the highest score, given the correct words before; null if it was
   * not measured.
   */
  readonly accuracy: number | null;
  /** Target tokens, excluding padding. */
  readonly tokens: number;
  /** BLEU of the translations, 0 to 100; null if none were made. */
  readonly bleu: number | null;
  /** chrF of the translations, 0 to 100; null if none were made. */
  readonly chrf: number | null;
  /** Duration. */
  readonly seconds: number;
  /** Whether this is the best validation so far. */
  readonly best: boolean;
  /** Translations of some of the texts. */
  readonly samples: readonly SampleTranslation[];
}

/** A sample translation made at a validation. */
export interface SampleTranslation {
  /** The text that was translated. */
  readonly source: string;
  /** What the model made of it. */
  readonly translation: string;
  /** The expected translation; null if unknown. */
  readonly reference: string | null;
  /** Cross-attention, mean over the heads of the last layer; null if it was not computed. */
  readonly attention: {
    readonly sourceTokens: readonly string[];
    readonly targetTokens: readonly string[];
    /** `[target tokens][source tokens]`; each row sums to 1. */
    readonly weights: readonly (readonly number[])[];
  } | null;
}

/** One pass over the training data. */
export interface EpochRecord {
  /** Counts from 1 over all calls to `fit`. */
  readonly epoch: number;
  /** The run's step count at the end of the epoch. */
  readonly step: number;
  /** Mean over all target tokens of the epoch. */
  readonly trainLoss: number;
  /** Mean over all target tokens of the validation data; null without validation. */
  readonly validationLoss: number | null;
  /** Target tokens used for training, excluding padding. */
  readonly trainTokens: number;
  /** Target tokens used for validation; 0 without validation. */
  readonly validationTokens: number;
  /** Duration of the training part. */
  readonly trainSeconds: number;
  /** Duration of the validation part; 0 without validation. */
  readonly validationSeconds: number;
  /** Batches skipped because they had no target token. */
  readonly skippedBatches: number;
  /** Steps skipped because a loss or gradient was not finite. */
  readonly skippedSteps: number;
  /** Whether this epoch is the best so far. */
  readonly best: boolean;
}

/** All records of a run, as stored in `history.json`. */
export interface History {
  /** One record for each optimizer step taken. */
  readonly steps: StepRecord[];
  /** One record for each validation batch with target tokens. */
  readonly validationBatches: ValidationBatchRecord[];
  /** One record for each complete validation. */
  readonly validations: ValidationRecord[];
  /** One record for each complete epoch. */
  readonly epochs: EpochRecord[];
}

/**
 * Returns the text of `history.json`. Numbers that JSON cannot represent are strings: `"NaN"`,
 * `"Infinity"`.
 *
 * @throws TypeError if `history` is not a history
 */
export function historyJson(history: History): string {
  checkHistory('historyJson', history);
  const text = JSON.stringify(history, (_key, value: unknown) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
  // One record per line: readable and compact.
  return `${text.replaceAll('},{', '},\n{')}\n`;
}

/** @throws TypeError if one of its lists is missing @internal */
export function checkHistory(owner: string, value: unknown): asserts value is History {
  const history = checkObject(owner, 'history', value, 'the history of a Trainer');
  for (const name of ['steps', 'validationBatches', 'validations', 'epochs']) {
    checkArray(owner, `history.${name}`, history[name], 'an array');
  }
}
