/** Options and results of a Trainer. */
import type { SpecialIds } from '../data/tokenizers/specialIds.js';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import type { JsonValue, TranslationColumns } from '../io/modelConfig.js';
import type { Schedule } from '../optim/schedule.js';
import type { BatchSource } from './batchSource.js';
import type { EndEvent, TrainingListener } from './run/events.js';
import type { History } from './run/history.js';
import type { BestValidation, Selection } from './run/runProgress.js';
import type { SampleText } from './samples.js';
import type { ScoreSettings } from './validation.js';
import type { DataReport } from '../data/report.js';
import type { ExponentialMovingAverageOptions } from './averaging/exponentialMovingAverage.js';
import type { SmoothingForm } from '../nn/loss/labelSmoothing.js';

/** The interface that the training loop requires of an optimizer. */
export interface TrainingOptimizer {
  /** The learning rate; the schedule sets it before each step. */
  lr: number;
  /** Clears the gradients of all parameters. */
  zeroGrad(): void;
  /** Updates every parameter that has a gradient; the trainer waits for it. */
  stepAsync(): Promise<void>;
}

/** Options of {@link Trainer}; only `specialIds` is required. */
export interface TrainerOptions {
  /** Ids of pad (which the loss ignores), bos and eos. */
  specialIds: SpecialIds;
  /**
   * Default: the learning rate of `optimizer` if one is given, otherwise 5e-4 (our choice: seed 001
   * leaves it to its configuration).
   */
  learningRate?: number;
  /** Number of steps over which the rate increases from 0 to `learningRate`. Default 0. */
  warmup?: number;
  /** Rate for each step, instead of `learningRate` and `warmup`; for example `noam({ dModel })`. */
  schedule?: Schedule;
  /**
   * Default: `Adam` with PyTorch's betas, as in seed 001. With `learningRate`, `warmup` or
   * `schedule`, its rate is set at every step; without them, its rates and those of its groups are
   * unchanged.
   */
  optimizer?: TrainingOptimizer;
  /**
   * `'bfloat16'`: in training steps, the matrix products of linear layers round their inputs to
   * bfloat16, see `autocast`; weights, sums, norms, softmax, loss and optimizer remain float32, and
   * validation runs in the model's own dtype, as the saved model will. `'float16'`: likewise, with
   * the loss scaled up before the backward pass and the gradients scaled down after it; steps whose
   * gradients overflow are skipped, counted in `skippedSteps`, and followed by a smaller scale. It
   * requires `Adam` or `AdamW`. Default: the model's own dtype.
   */
  dtype?: 'float32' | 'bfloat16' | 'float16';
  /**
   * On a GPU: records a step as a CUDA graph for each batch size and replays it, which avoids
   * launching its kernels one by one; the steps are the same. Sizes are rounded up by at most an
   * eighth to keep their number small. Requires models and batches without padding (`isPackable`),
   * `Adam` or `AdamW`, and no `accumulate` or `'float16'`. No effect on the CPU. Default false.
   */
  graphs?: boolean;
  /**
   * Number of batches whose gradients are accumulated for one optimizer step. The loss of a step is
   * the mean over all their tokens, so the result is that of one large batch. Default 1.
   */
  accumulate?: number;
  /** Maximum norm of all gradients together; larger ones are scaled down to it. Default: no limit. */
  clip?: number;
  /**
   * Part of each target given to other words, from 0 to 1; the paper has 0.1 (section 5.4). The losses
   * of the steps are then those of the smoothed targets; validation is without. Default 0.
   */
  labelSmoothing?: number;
  /** The words that it is given to, see {@link SmoothingForm}. Default `'crossEntropy'`: all. */
  smoothingForm?: SmoothingForm;
  /**
   * What to do if a loss or gradient is not finite. `'stop'` (default): the step is not taken, and
   * `fit` saves `last/` and throws. `'skip'`: the step is skipped and counted.
   */
  nonFinite?: 'stop' | 'skip';
  /**
   * Output folder: `best/`, `last/`, `log.jsonl`, `history.json`, `loss.svg`, with `keepLast` or
   * `keepBest` also `checkpoints/`. Default: nothing is written.
   */
  out?: string;
  /**
   * Whether to continue the run in `out`, if there is one: with the same model, data, order, settings
   * and number of threads, it ends with the weights of a run that was not interrupted, to the bit on the
   * CPU. Other settings or data are an error. Default false.
   */
  resume?: boolean;
  /**
   * Further settings of the run, such as a fingerprint of its data: saved with it, and compared when it
   * is resumed. Default: none.
   */
  settings?: { readonly [name: string]: JsonValue };
  /**
   * Saves the run each time after this number of steps, besides after each validation and epoch.
   * Default: only after those.
   */
  saveEvery?: number;
  /** Number of latest saves whose models are kept in `checkpoints/`. Default 0. */
  keepLast?: number;
  /** Number of models with the best validations that are kept in `checkpoints/`. Default 0. */
  keepBest?: number;
  /** What the best validation is chosen by; scores need `scores`. Default `'loss'`. */
  select?: Selection;
  /** Whether to remove the models of an earlier run in `out`. Default false: they are an error. */
  overwrite?: boolean;
  /** Saved with the models; required for `samples` and by `Translator.load`. */
  tokenizer?: Tokenizer;
  /**
   * Averages the weights over the steps, see {@link ExponentialMovingAverage}: validation, `best/` and
   * `checkpoints/` have the average, `last/` the weights to continue from. Default: none.
   */
  averaging?: ExponentialMovingAverageOptions;
  /** Whether to write `report.html` into `out`, see {@link ReportWriter}. Default false. */
  report?: boolean;
  /** Reports on the data, such as `dataset.report`: kept in the log. Default: none. */
  data?: readonly DataReport[];
  /** Names of the columns that the pairs came from; saved with the models. */
  columns?: TranslationColumns;
  /**
   * Sentences translated at each validation, for its BLEU and chrF. Default: none, and there are no
   * scores.
   */
  scores?: ScoreSettings;
  /** Texts to translate and report after each validation, or epoch without one. Default: none. */
  samples?: readonly SampleText[];
  /** Shows the progress; null for none. Default: a {@link ProgressBar} on standard error. */
  reporter?: TrainingListener | null;
  /** Further listeners, such as records and stoppers; see also `Trainer.on`. Default: none. */
  listeners?: readonly TrainingListener[];
}

/** Options of {@link Trainer.fit}; at least one of `epochs`, `steps` and `minutes` is required. */
export interface FitOptions {
  /** Number of passes over the training data. Default: no limit. */
  epochs?: number;
  /** Number of optimizer steps. Default: no limit. */
  steps?: number;
  /** Minutes of training, validation included. Default: no limit. */
  minutes?: number;
  /** Ends after this number of validations in a row that are not the best. Default: no limit. */
  patience?: number;
  /** Data used to select the best model. Default: none, and no `best/` is saved. */
  validation?: BatchSource;
  /** Validates after each of this many steps, and at the end. Default: after each epoch. */
  validateEvery?: number;
  /** Whether a resumed run may have other limits than it was started with. Default false. */
  extend?: boolean;
  /** Stops after the current step and saves the run. */
  signal?: AbortSignal;
}

/** The result of {@link Trainer.fit}. */
export interface FitResult {
  /** Whether the signal stopped the training. */
  readonly aborted: boolean;
  /** Why the training ended; errors are thrown. */
  readonly reason: EndEvent['reason'];
  /** Complete epochs so far. */
  readonly epochs: number;
  /** Optimizer steps so far. */
  readonly steps: number;
  /** The best validation; null without validation, or if no loss was finite. */
  readonly best: BestValidation | null;
  /** The losses of all calls to `fit`: the same object as `trainer.history`. */
  readonly history: History;
}
