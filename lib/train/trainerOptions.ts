/** What a Trainer can be told. */
import type { SpecialIds } from '../data/tokenizers/specialIds.js';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import type { TranslationColumns } from '../io/modelConfig.js';
import type { Schedule } from '../optim/schedule.js';
import type { BatchSource } from './batchSource.js';
import type { History } from './run/history.js';
import type { BestEpoch } from './metrics.js';
import type { TrainingReporter } from './run/progress.js';

/** What the loop needs of an optimizer. */
export interface TrainingOptimizer {
  /** The learning rate; the schedule sets it before each step. */
  lr: number;
  /** Drops the gradients of all parameters. */
  zeroGrad(): void;
  /** Updates every parameter that has a gradient; the trainer waits for it. */
  stepAsync(): Promise<void>;
}

/** Options of {@link Trainer}; only `specialIds` are needed. */
export interface TrainerOptions {
  /** Ids of pad (which the loss leaves out), bos and eos. */
  specialIds: SpecialIds;
  /**
   * Default: the rate of `optimizer`, without one 5e-4 (ours: seed 001 leaves it to its
   * configuration).
   */
  learningRate?: number;
  /** Steps over which the rate grows from 0 to `learningRate`. Default 0. */
  warmup?: number;
  /** Rate by step, in place of `learningRate` and `warmup`; for example `noam({ dModel })`. */
  schedule?: Schedule;
  /**
   * Default: `Adam` with PyTorch's betas, as in seed 001. With `learningRate`, `warmup` or
   * `schedule` its rate is set at every step; without them it is left alone, that of each of its
   * groups too.
   */
  optimizer?: TrainingOptimizer;
  /**
   * `'bfloat16'`: the products of linear layers in training steps on factors rounded to bfloat16,
   * see `autocast`; weights, sums, norms, softmax, loss and optimizer stay float32, and
   * validation runs in the model's own dtype, as the saved model will. `'float16'`: likewise, with
   * the loss scaled up before the backward pass and gradients down behind it; steps whose gradients
   * overflow are left out, counted in `skippedSteps`, and followed by a smaller scale. It needs an
   * `Adam` or `AdamW`. Default: the model's own.
   */
  dtype?: 'float32' | 'bfloat16' | 'float16';
  /**
   * On a GPU: records a step as a CUDA graph for each size of batch and replays it, which spares
   * launching its kernels one by one; the steps are the same. Sizes are rounded up by at most an
   * eighth to be few. For models and batches without padding (`isPackable`), an `Adam` or `AdamW`,
   * and no `accumulate` or `'float16'`. Without effect on the CPU. Default false.
   */
  graphs?: boolean;
  /**
   * Batches whose gradients make one optimizer step. The loss of a step is the sum over all their
   * tokens divided by the number of those, so the result is that of one large batch. Default 1.
   */
  accumulate?: number;
  /** Largest norm of all gradients together; larger ones are scaled down to it. Default: none. */
  clip?: number;
  /**
   * What a loss or gradient that is not finite does. `'stop'` (default): the step is not taken,
   * `fit` saves `last/` and throws. `'skip'`: the step is left out and counted.
   */
  nonFinite?: 'stop' | 'skip';
  /** Folder of the run: `best/`, `last/`, `history.json`, `loss.svg`. Default: nothing is written. */
  out?: string;
  /** Whether the models of an earlier run in `out` are removed. Default false: they are an error. */
  overwrite?: boolean;
  /** Saved with the models; needed for `samples` and for `Translator.load`. */
  tokenizer?: Tokenizer;
  /** Names of the columns that the pairs came from; saved with the models. */
  columns?: TranslationColumns;
  /** Source texts that are translated and told to the reporter after each epoch. Default none. */
  samples?: readonly string[];
  /** Hears of the progress; null: nobody. Default a {@link ProgressBar} on standard error. */
  reporter?: TrainingReporter | null;
}

/** Options of {@link Trainer.fit}. */
export interface FitOptions {
  /** How many times to go through the training data. */
  epochs: number;
  /** Data that picks the best model. Default: none, and no `best/`. */
  validation?: BatchSource;
  /** Stops after the current step; `last/` then has the model as it is. */
  signal?: AbortSignal;
}

/** How a call of {@link Trainer.fit} ended. */
export interface FitResult {
  /** Whether the signal stopped it. */
  readonly aborted: boolean;
  /** Complete epochs so far. */
  readonly epochs: number;
  /** Optimizer steps so far. */
  readonly steps: number;
  /** Best epoch by validation loss; null without validation, or if no loss was finite. */
  readonly best: BestEpoch | null;
  /** The losses of all calls of `fit`: `trainer.history` itself. */
  readonly history: History;
}
