/** Options and results of a Trainer. */
import type { SpecialIds } from '../data/tokenizers/specialIds.js';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import type { TranslationColumns } from '../io/modelConfig.js';
import type { Schedule } from '../optim/schedule.js';
import type { BatchSource } from './batchSource.js';
import type { History } from './run/history.js';
import type { BestEpoch } from './metrics.js';
import type { TrainingReporter } from './run/progress.js';

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
   * What to do if a loss or gradient is not finite. `'stop'` (default): the step is not taken, and
   * `fit` saves `last/` and throws. `'skip'`: the step is skipped and counted.
   */
  nonFinite?: 'stop' | 'skip';
  /** Output folder: `best/`, `last/`, `history.json`, `loss.svg`. Default: nothing is written. */
  out?: string;
  /** Whether to remove the models of an earlier run in `out`. Default false: they are an error. */
  overwrite?: boolean;
  /** Saved with the models; required for `samples` and by `Translator.load`. */
  tokenizer?: Tokenizer;
  /** Names of the columns that the pairs came from; saved with the models. */
  columns?: TranslationColumns;
  /** Source texts to translate and report after each epoch. Default: none. */
  samples?: readonly string[];
  /** Receives the progress; null for none. Default: a {@link ProgressBar} on standard error. */
  reporter?: TrainingReporter | null;
}

/** Options of {@link Trainer.fit}. */
export interface FitOptions {
  /** Number of passes over the training data. */
  epochs: number;
  /** Data used to select the best model. Default: none, and no `best/` is saved. */
  validation?: BatchSource;
  /** Stops after the current step and saves the model as `last/`. */
  signal?: AbortSignal;
}

/** The result of {@link Trainer.fit}. */
export interface FitResult {
  /** Whether the signal stopped the training. */
  readonly aborted: boolean;
  /** Complete epochs so far. */
  readonly epochs: number;
  /** Optimizer steps so far. */
  readonly steps: number;
  /** The epoch with the lowest validation loss; null without validation, or if no loss was finite. */
  readonly best: BestEpoch | null;
  /** The losses of all calls to `fit`: the same object as `trainer.history`. */
  readonly history: History;
}
