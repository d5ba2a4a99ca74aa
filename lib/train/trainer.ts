/** The training loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkTokenizerFits } from '../data/tokenizers/tokenizer.js';
import { checkSpecialIds } from '../data/tokenizers/specialIds.js';
import { checkModel } from '../nn/model/checkModel.js';
import { modelVocabSize } from '../nn/model/modelVocabulary.js';
import { Translator } from '../decode/translator.js';
import { isPackable, type Transformer } from '../nn/model/transformer.js';
import { isInEvalMode, keepModes } from '../nn/module/modes.js';
import { structureOf } from '../io/modelStructure.js';
import { Adam } from '../optim/adam.js';
import type { Schedule } from '../optim/schedule.js';
import { TorchError } from '../runtime/errors.js';
import { canRecordGraphs, recordGraph } from '../tensor/cudaGraph.js';
import type { Tensor } from '../tensor/tensor.js';
import { BatchReader, type BatchSource } from './batchSource.js';
import {
  checkFitArguments,
  checkParameters,
  checkTrainerOptions,
  scheduleOf,
} from './checkTrainer.js';
import { CapturedSteps } from './steps/capturedSteps.js';
import { longRowsWarning, warningsOf } from './epochWarnings.js';
import { evaluate, type Evaluation } from './evaluate.js';
import type { EpochRecord, History } from './run/history.js';
import { inScope } from './inScope.js';
import { LossWatch } from './lossWatch.js';
import { BestModel, TokenMean } from './metrics.js';
import { ProgressBar, type TrainingReporter } from './run/progress.js';
import { QueuedSteps } from './steps/queuedSteps.js';
import { RunFolder } from './run/runFolder.js';
import { weightBytes } from './run/runRoom.js';
import { RunSaver } from './run/runSaver.js';
import { useSparseEmbeddings } from './steps/sparseEmbeddings.js';
import { showSamples } from './samples.js';
import { ImmediateSteps, type StepOutcome, type Steps } from './steps/steps.js';
import type { FitOptions, FitResult, TrainerOptions, TrainingOptimizer } from './trainerOptions.js';

type EpochLosses = Pick<EpochRecord, 'trainLoss' | 'validationLoss'>;

interface EpochTraining {
  readonly mean: TokenMean;
  readonly seconds: number;
  readonly emptyBatches: number;
  readonly skippedSteps: number;
  /** Whether all batches were processed. */
  readonly complete: boolean;
}

/**
 * Trains a translation model with token-level cross-entropy and Adam, validates after each epoch and
 * keeps the best model.
 *
 * ```ts
 * const trainer = new Trainer(model, { specialIds, tokenizer, out: 'runs/a' });
 * await trainer.fit(trainBatches, { validation: validationBatches, epochs: 10 });
 * ```
 *
 * Every step yields to the event loop (the backward pass and the optimizer run on other threads), and
 * leaves the number of live tensors unchanged.
 */
export class Trainer {
  /** The model being trained; the caller still owns it. */
  readonly model: Transformer;
  /** The `optimizer` option, or the trainer's own Adam. */
  readonly optimizer: TrainingOptimizer;
  /** Losses so far, over all calls to {@link fit}. */
  readonly history: History = {
    steps: [],
    validationBatches: [],
    validations: [],
    epochs: [],
  };
  readonly #options: TrainerOptions;
  readonly #parameters: Tensor[];
  /** Null if the optimizer keeps its own learning rate. */
  readonly #schedule: Schedule | null;
  readonly #accumulate: number;
  readonly #ownOptimizer: Adam | null;
  readonly #reporter: TrainingReporter | null;
  readonly #folder: RunFolder | null;
  readonly #saver: RunSaver | null;
  readonly #best = new BestModel();
  readonly #lossWatch: LossWatch;
  #epoch = 0;
  #step = 0;
  readonly #start = performance.now();
  #fitting = false;
  /** Restores the modules' modes of the latest epoch; null before the first. */
  #restoreModes: (() => void) | null = null;
  /** Checked once per epoch: hooks or modules may be replaced between epochs. */
  #packs = false;

  /** @throws TypeError, RangeError if `model` is not a Transformer or an option is invalid */
  constructor(model: Transformer, options: TrainerOptions) {
    checkModel('Trainer', model);
    checkTrainerOptions(options);
    const vocabSize = modelVocabSize(model);
    const { tokenizer } = options;
    if (tokenizer !== undefined) checkTokenizerFits('Trainer', tokenizer, vocabSize);
    checkSpecialIds(options.specialIds, vocabSize, 'Trainer');
    this.#lossWatch = new LossWatch(vocabSize);
    // Fail now rather than after the first epoch.
    if (options.out !== undefined) structureOf('Trainer', model);
    this.model = model;
    this.#options = options;
    this.#parameters = model.parameters().filter((parameter) => parameter.requiresGrad);
    this.#schedule = scheduleOf(options);
    checkParameters(options.optimizer, this.#parameters);
    this.#accumulate = options.accumulate ?? 1;
    this.#ownOptimizer = options.optimizer === undefined ? new Adam(this.#parameters) : null;
    this.optimizer = options.optimizer ?? (this.#ownOptimizer as Adam);
    this.#reporter = options.reporter === undefined ? new ProgressBar() : options.reporter;
    this.#folder = options.out === undefined ? null : new RunFolder(options.out);
    const say = (message: string) => this.#reporter?.message(message);
    this.#saver = this.#folder === null ? null : new RunSaver(this.#folder, say);
  }

  /**
   * Trains for `epochs` more epochs. A second call continues where the first ended.
   *
   * A model in eval mode is put into training mode. If only some modules are in eval mode, they
   * remain so: `model.train(); model.encoder.eval()` trains the encoder without dropout. To freeze its
   * weights, set `requiresGrad` to false. Validation and samples run in eval mode and restore the mode
   * of each module.
   *
   * @param train batches of each epoch
   * @throws TypeError, RangeError if an argument is invalid, if a source yields something that is not
   *   a batch, or if another `fit` of this trainer is running
   * @throws TorchError ERR_NON_FINITE if a loss or gradient is not finite (option `nonFinite`);
   *   ERR_CHECKPOINT before the first step if the disk of `out` has too little space or another
   *   training run uses `out`, or at the end if the last state could not be saved
   */
  async fit(train: BatchSource, options: FitOptions): Promise<FitResult> {
    checkFitArguments(train, options, this.#fitting);
    this.#fitting = true;
    try {
      await this.#folder?.lock();
      try {
        return await this.#fit(train, options);
      } finally {
        await this.#folder?.release();
      }
    } finally {
      this.#fitting = false;
    }
  }

  async #fit(train: BatchSource, { epochs, validation, signal }: FitOptions): Promise<FitResult> {
    const lastEpoch = this.#epoch + epochs;
    const stepsBefore = this.#step;
    // Already aborted: do not remove an earlier run's models.
    if (this.#epoch === 0 && this.#step === 0 && signal?.aborted !== true) {
      await this.#folder?.prepare(this.#options.overwrite ?? false, {
        weights: weightBytes(this.model),
        models: validation === undefined ? ['last'] : ['best', 'last'],
      });
    }
    const steps = this.#makeSteps();
    try {
      while (this.#epoch < lastEpoch && signal?.aborted !== true) {
        const epoch = this.#epoch + 1;
        const training = await this.#train(train, steps, epoch, lastEpoch, signal);
        if (!training.complete) break;
        this.#epoch = epoch;
        const validated =
          validation === undefined ? null : await this.#validate(validation, lastEpoch, signal);
        await this.#finishEpoch(training, validated, lastEpoch, signal);
      }
      // Without a step there is nothing new to save, and an older `last/` must be kept.
      if (signal?.aborted === true && this.#step > stepsBefore) await this.#saveLast();
      this.#saver?.refuseFailure(this.#step);
    } catch (error) {
      if (isNonFinite(error) && this.#step > stepsBefore) await this.#saveLast();
      throw error;
    } finally {
      steps.dispose();
      this.#reporter?.finish();
    }
    return {
      aborted: signal?.aborted === true && this.#epoch < lastEpoch,
      epochs: this.#epoch,
      steps: this.#step,
      best: this.#best.best,
      history: this.history,
    };
  }

  /** One pass over the training data, or less if the signal is aborted. */
  async #train(
    source: BatchSource,
    steps: Steps,
    epoch: number,
    epochs: number,
    signal: AbortSignal | undefined,
  ): Promise<EpochTraining> {
    const start = performance.now();
    const mean = new TokenMean();
    const batches = new BatchReader('Trainer.fit', 'train', source, epoch);
    let batch = 0;
    let emptyBatches = 0;
    let skippedSteps = 0;
    let complete = false;
    this.#enterTraining();
    this.#packs = isPackable(this.model);
    const restoreEmbeddings =
      this.#ownOptimizer === null ? () => undefined : useSparseEmbeddings(this.model);
    try {
      while (signal?.aborted !== true) {
        const [given, outcomes] = await inScope(async () => {
          const next = await batches.take(this.#accumulate);
          return [next.length, await (next.length === 0 ? steps.finish() : steps.take(next))];
        });
        for (const outcome of outcomes) {
          batch += outcome.batches;
          emptyBatches += outcome.empty;
          if (outcome.kind === 'taken') this.#record(outcome, epoch, mean);
          if (outcome.kind !== 'skipped') continue;
          skippedSteps++;
          if (outcome.isOverflow !== true) this.#refuseNonFinite(outcome.fault, epoch, batch);
        }
        if (outcomes.length > 0) {
          this.#reporter?.batch({
            part: 'train',
            epoch,
            epochs,
            batch,
            batches: batches.length,
            loss: mean.mean,
            tokens: mean.tokens,
          });
        }
        if (given === 0) {
          complete = true;
          break;
        }
        await nextTurn();
      }
    } finally {
      // After an abort or an error, steps already taken still count.
      for (const outcome of await steps.finish().catch(() => [])) {
        if (outcome.kind === 'taken') this.#record(outcome, epoch, mean);
      }
      restoreEmbeddings();
      await batches.close();
    }
    if (complete && batch === 0) throw noBatches(epoch);
    return {
      mean,
      seconds: (performance.now() - start) / 1000,
      emptyBatches,
      skippedSteps,
      complete,
    };
  }

  /**
   * If only some modules are in eval mode, that is intended. A model entirely in eval mode was loaded,
   * or used for something else since the last epoch.
   */
  #enterTraining(): void {
    if (isInEvalMode(this.model)) {
      if (this.#restoreModes === null) this.model.train();
      else this.#restoreModes();
    }
    this.#restoreModes = keepModes(this.model);
  }

  #record(
    { lossSum, tokens, learningRate, gradientNorm }: StepOutcome & { kind: 'taken' },
    epoch: number,
    mean: TokenMean,
  ): void {
    this.#step++;
    mean.add(lossSum, tokens);
    const loss = lossSum / tokens;
    const seconds = (performance.now() - this.#start) / 1000;
    this.history.steps.push({
      step: this.#step,
      epoch,
      loss,
      tokens,
      learningRate,
      gradientNorm,
      seconds,
    });
    this.#warn(this.#lossWatch.step(loss));
  }

  #warn(warning: string | null): void {
    if (warning !== null) this.#reporter?.message(warning);
  }

  /** With Adam, steps on a GPU can be queued without waiting, and the loss can be scaled. */
  #makeSteps(): Steps {
    const { specialIds, dtype = 'float32', clip = Infinity } = this.#options;
    const { nonFinite, graphs = false } = this.#options;
    const settings = {
      model: this.model,
      parameters: this.#parameters,
      pad: specialIds.pad,
      packs: () => this.#packs,
      dtype,
      clip,
      schedule: this.#schedule,
      stepsTaken: () => this.#step,
    };
    const { optimizer } = this;
    const isOnGpu = this.#parameters.some(({ device }) => device !== 'cpu');
    const stopsAtFault = nonFinite !== 'skip';
    if (isOnGpu && graphs && optimizer instanceof Adam) {
      if (canRecordGraphs()) {
        return new CapturedSteps({ ...settings, optimizer }, stopsAtFault, recordGraph);
      }
      this.#reporter?.message(
        'graphs: the CUDA kernels that record them are not available (`npx torchformer doctor`)',
      );
    }
    return (isOnGpu || dtype === 'float16') && optimizer instanceof Adam
      ? new QueuedSteps({ ...settings, optimizer }, stopsAtFault)
      : new ImmediateSteps({ ...settings, optimizer });
  }

  async #validate(
    source: BatchSource,
    epochs: number,
    signal: AbortSignal | undefined,
  ): Promise<Evaluation & { seconds: number }> {
    const start = performance.now();
    const epoch = this.#epoch;
    const longRows: number[] = [];
    const evaluation = await evaluate(this.model, source, {
      pad: this.#options.specialIds.pad,
      epoch,
      ...(signal === undefined ? {} : { signal }),
      // An error would lose the epoch's training.
      onLongRows: (rows) => longRows.push(...rows),
      onBatch: ({ index, loss, tokens }, soFar) => {
        this.history.validationBatches.push({ epoch, batch: index, loss, tokens });
        this.#reporter?.batch({
          part: 'validation',
          epoch,
          epochs,
          batch: index,
          batches: soFar.expectedBatches,
          loss: soFar.loss,
          tokens: soFar.tokens,
        });
      },
    });
    this.#warn(longRowsWarning(longRows));
    return { ...evaluation, seconds: (performance.now() - start) / 1000 };
  }

  async #finishEpoch(
    training: EpochTraining,
    validated: (Evaluation & { seconds: number }) | null,
    epochs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const usable = validated?.complete === true ? validated : null;
    const losses = { trainLoss: training.mean.mean, validationLoss: usable?.loss ?? null };
    const best = usable !== null && (await this.#keepBest(usable.loss, losses));
    const record: EpochRecord = {
      epoch: this.#epoch,
      step: this.#step,
      ...losses,
      trainTokens: training.mean.tokens,
      validationTokens: usable?.tokens ?? 0,
      trainSeconds: training.seconds,
      validationSeconds: validated?.seconds ?? 0,
      skippedBatches: training.emptyBatches,
      skippedSteps: training.skippedSteps,
      best,
    };
    this.history.epochs.push(record);
    await this.#saveLast();

    this.#reporter?.epoch(record, epochs);
    for (const warning of warningsOf(record)) this.#reporter?.message(warning);
    this.#warn(this.#lossWatch.epoch(record.trainLoss));
    if (validated === null || validated.complete) await this.#showSamples(signal);
  }

  /** Saves the model if it is the best so far; a model that cannot be saved does not count as best. */
  async #keepBest(loss: number, losses: EpochLosses): Promise<boolean> {
    if (!this.#best.isBetter(loss)) return false;
    const saved = await this.#saver?.saveBest(this.model, this.#saveOptions(losses));
    return saved !== false && this.#best.consider(this.#epoch, loss);
  }

  async #saveLast(): Promise<void> {
    const options = this.#saveOptions(this.history.epochs.at(-1));
    await this.#saver?.saveLast(this.model, options, this.history);
  }

  #saveOptions(latest: EpochLosses | undefined) {
    const { specialIds, tokenizer, columns } = this.#options;
    return {
      specialIds,
      ...(tokenizer === undefined ? {} : { tokenizer }),
      ...(columns === undefined ? {} : { columns }),
      training: {
        epoch: this.#epoch,
        step: this.#step,
        trainLoss: latest?.trainLoss ?? null,
        validationLoss: latest?.validationLoss ?? null,
      },
    };
  }

  async #showSamples(signal: AbortSignal | undefined): Promise<void> {
    const { samples = [], tokenizer, specialIds } = this.#options;
    if (samples.length === 0 || tokenizer === undefined || this.#reporter === null) return;
    const restoreModes = keepModes(this.model);
    this.model.eval();
    try {
      const translator = new Translator(this.model, { tokenizer, specialIds });
      await showSamples(translator, samples, signal, (line) => this.#reporter?.message(line));
    } finally {
      restoreModes();
    }
  }

  #refuseNonFinite(fault: string, epoch: number, batch: number): void {
    const place = `epoch ${epoch}, batch ${batch}`;
    if (this.#options.nonFinite === 'skip') {
      this.#reporter?.message(`${place}: ${fault}; the step was skipped`);
      return;
    }
    throw new TorchError(
      'ERR_NON_FINITE',
      `Trainer.fit: ${fault} in ${place}; the step was not taken, so the model is as it was after step ` +
        `${this.#step}. Try a smaller learningRate, a warmup or clip, or pass nonFinite: 'skip'`,
    );
  }

  /** Frees the state of the trainer's own optimizer and all gradients, but not the model. */
  dispose(): void {
    this.optimizer.zeroGrad();
    this.#ownOptimizer?.dispose();
  }

  /** Calls {@link Trainer.dispose} at the end of a block: `using trainer = new Trainer(…)`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

function isNonFinite(error: unknown): boolean {
  return error instanceof TorchError && error.code === 'ERR_NON_FINITE';
}

function noBatches(epoch: number): Error {
  return new TypeError(
    `Trainer.fit: there is no batch in epoch ${epoch}` +
      (epoch > 1
        ? '; an iterator can be consumed only once: pass a function that returns one for each epoch'
        : ''),
  );
}
