/** The training loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkSpecialIds } from '../data/tokenizers/specialIds.js';
import { checkTokenizerFits } from '../data/tokenizers/tokenizer.js';
import { structureOf } from '../io/modelStructure.js';
import { checkModel } from '../nn/model/checkModel.js';
import { modelVocabSize } from '../nn/model/modelVocabulary.js';
import { isPackable, type Transformer } from '../nn/model/transformer.js';
import { isInEvalMode, keepModes } from '../nn/module/modes.js';
import { Adam } from '../optim/adam.js';
import type { Schedule } from '../optim/schedule.js';
import { checkFunction } from '../runtime/arguments.js';
import { TorchError } from '../runtime/errors.js';
import type { Tensor } from '../tensor/tensor.js';
import { ExponentialMovingAverage } from './averaging/exponentialMovingAverage.js';
import { BatchReader, type BatchSource } from './batchSource.js';
import {
  checkFitArguments,
  checkParameters,
  checkTrainerOptions,
  scheduleOf,
} from './checkTrainer.js';
import { warningsOf } from './epochWarnings.js';
import { inScope } from './inScope.js';
import {
  checkEventName,
  EventListeners,
  type EndEvent,
  type TrainingEvents,
} from './run/events.js';
import type { EpochRecord, History, ValidationRecord } from './run/history.js';
import { Limits } from './run/limits.js';
import { ProgressBar } from './run/progress.js';
import { RunFolder } from './run/runFolder.js';
import { RunProgress } from './run/runProgress.js';
import { RunState, type SaveMoment } from './run/runState.js';
import { makeSteps } from './steps/makeSteps.js';
import { faultyParameter } from './steps/nonFinite.js';
import { useSparseEmbeddings } from './steps/sparseEmbeddings.js';
import type { StepOutcome, Steps } from './steps/steps.js';
import type { FitOptions, FitResult, TrainerOptions, TrainingOptimizer } from './trainerOptions.js';
import { showSamples, validate } from './validation.js';

/**
 * Trains a translation model with token-level cross-entropy and Adam, validates it and keeps the best.
 *
 * ```ts
 * const trainer = new Trainer(model, { specialIds, tokenizer, out: 'runs/a', resume: true });
 * trainer.on('validation', ({ step, loss }) => console.log(step, loss));
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
  /** Records so far, over all calls to {@link fit} and all parts of a resumed run. */
  readonly history: History = { steps: [], validationBatches: [], validations: [], epochs: [] };
  readonly #options: TrainerOptions;
  readonly #parameters: Tensor[];
  /** Null if the optimizer keeps its own learning rate. */
  readonly #schedule: Schedule | null;
  readonly #ownOptimizer: Adam | null;
  /** Averages of the weights; null without. */
  readonly #average: ExponentialMovingAverage | null;
  readonly #listeners = new EventListeners();
  readonly #progress: RunProgress;
  /** Saves and restores the run; null if nothing is written. */
  readonly #state: RunState | null;
  /** The planned end of the earlier calls to `fit`. */
  #planned = { epochs: 0, steps: 0, minutes: 0 };
  #fitting = false;
  /** When the clock of this call started, less the seconds before. */
  #start = 0;
  /** Restores the modules' modes of the latest epoch; null before the first. */
  #restoreModes: (() => void) | null = null;
  /** Checked once per epoch: hooks or modules may be replaced between epochs. */
  #packs = false;
  /** The step of the latest save. */
  #savedAt = 0;

  /** @throws TypeError, RangeError if `model` is not a Transformer or an option is invalid */
  constructor(model: Transformer, options: TrainerOptions) {
    checkModel('Trainer', model);
    checkTrainerOptions(options);
    const vocabSize = modelVocabSize(model);
    const { tokenizer, specialIds, out, reporter, listeners = [], averaging } = options;
    if (tokenizer !== undefined) checkTokenizerFits('Trainer', tokenizer, vocabSize);
    checkSpecialIds(specialIds, vocabSize, 'Trainer');
    // Fail now rather than after the first epoch.
    if (out !== undefined) structureOf('Trainer', model);
    this.model = model;
    this.#options = options;
    this.#parameters = model.parameters().filter((parameter) => parameter.requiresGrad);
    this.#schedule = scheduleOf(options);
    checkParameters(options.optimizer, this.#parameters);
    this.#ownOptimizer = options.optimizer === undefined ? new Adam(this.#parameters) : null;
    this.optimizer = options.optimizer ?? (this.#ownOptimizer as Adam);
    this.#progress = new RunProgress(vocabSize, options.select ?? 'loss');
    this.#average = averaging === undefined ? null : new ExponentialMovingAverage(model, averaging);
    this.#state =
      out === undefined
        ? null
        : new RunState(new RunFolder(out), {
            model,
            options,
            optimizer: this.optimizer,
            schedule: this.#schedule,
            average: this.#average,
            progress: this.#progress,
            history: this.history,
            say: (message) => this.#say(message),
            saved: (event) => this.#listeners.emit('checkpoint', event),
          });
    // First, so that what the others read from it is complete.
    for (const listener of this.#state?.listeners ?? []) this.#listeners.add('Trainer', listener);
    if (reporter !== null) this.#listeners.add('Trainer', reporter ?? new ProgressBar());
    for (const listener of listeners) this.#listeners.add('Trainer', listener);
  }

  /** Steps taken so far, over all parts of the run. */
  get step(): number {
    return this.#progress.step;
  }

  /** Complete epochs so far, over all parts of the run. */
  get epoch(): number {
    return this.#progress.epoch;
  }

  /**
   * Calls `handle` at every event of this name, see {@link TrainingEvents}.
   *
   * @returns a function that ends this
   * @throws TypeError if there is no such event, or `handle` is not a function
   */
  on<Name extends keyof TrainingEvents>(
    name: Name,
    handle: (event: TrainingEvents[Name]) => void | Promise<void>,
  ): () => void {
    checkEventName('Trainer.on', name);
    checkFunction('Trainer.on', 'handle', handle);
    return this.#listeners.add('Trainer.on', { [name]: handle });
  }

  /**
   * Trains until one of the limits in `options`, counted from the end of the previous call, or with
   * `resume` from the start of the run. A second call continues where the first ended, within an epoch
   * too.
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
   *   ERR_CHECKPOINT before the first step if the disk of `out` has too little space, another
   *   training run uses `out`, or the run there cannot be resumed with these settings or this data; or
   *   at the end if the last state could not be saved
   */
  async fit(train: BatchSource, options: FitOptions): Promise<FitResult> {
    checkFitArguments(train, options, this.#fitting);
    this.#fitting = true;
    try {
      await this.#state?.folder.lock();
      try {
        return await this.#fit(train, options);
      } finally {
        await this.#state?.folder.release();
      }
    } finally {
      this.#fitting = false;
    }
  }

  async #fit(train: BatchSource, options: FitOptions): Promise<FitResult> {
    const progress = this.#progress;
    const isNew = progress.step === 0 && progress.epoch === 0;
    // Already aborted: an earlier run in the folder must be left as it is.
    if (options.signal?.aborted === true) return this.#result('aborted');
    // Also of a run that is resumed: its limits count from its start.
    const limits = this.#limits(options);
    if (isNew) await this.#state?.open(options, limits.settings);
    const { step: stepsBefore, seconds } = progress;
    this.#start = performance.now() - 1000 * seconds;
    this.#savedAt = stepsBefore;
    const steps = this.#makeSteps();
    this.#state?.begin(steps.lossScale, limits.settings);
    const restoreEmbeddings = useSparseEmbeddings(this.model, this.optimizer);
    let end: Pick<EndEvent, 'reason' | 'error'> = { reason: 'error' };
    try {
      await this.#emitStart(limits);
      const reason = await this.#loop(train, options, limits, steps);
      // Without a step there is nothing new to save, and an older `last/` must be kept.
      if (progress.step > stepsBefore && this.#savedAt !== progress.step) {
        await this.#save({ keeps: this.#keepsLastStep(limits) });
      }
      await this.#state?.finish(progress.step);
      end = { reason };
    } catch (error) {
      end = { reason: 'error', error };
      await this.#state?.settled().catch(() => undefined);
      if (isNonFinite(error) && progress.step > stepsBefore) {
        await this.#save();
        await this.#state?.settled();
      }
      throw error;
    } finally {
      restoreEmbeddings();
      steps.dispose();
      progress.seconds = this.#seconds;
      const { step, epoch } = progress;
      await this.#listeners.emit('end', { step, epoch, seconds: progress.seconds, ...end });
    }
    const { minutes } = limits;
    this.#planned = { epochs: limits.epochs, steps: limits.steps, minutes };
    return this.#result(end.reason);
  }

  #result(reason: EndEvent['reason']): FitResult {
    const { epoch: epochs, step: steps, best } = this.#progress;
    const { history } = this;
    return { aborted: reason === 'aborted', reason, epochs, steps, best, history };
  }

  /** Epochs of steps, with validations and saves between them. @returns why it ended */
  async #loop(
    train: BatchSource,
    options: FitOptions,
    limits: Limits,
    steps: Steps,
  ): Promise<EndEvent['reason']> {
    const progress = this.#progress;
    for (;;) {
      let epochStart = performance.now() - 1000 * progress.soFar.seconds;
      const batches = await this.#enterEpoch(train);
      try {
        for (;;) {
          const pause = performance.now();
          await this.#betweenSteps(options, limits, steps);
          // Validations are not a part of an epoch's time.
          epochStart += performance.now() - pause;
          const reason = this.#over(options, limits);
          if (reason !== null) return reason;
          const { count, digest, outcomes } = await inScope(async () => {
            const next = await batches.take(this.#options.accumulate ?? 1);
            return {
              count: next.length,
              digest: progress.digestAfter(next),
              outcomes: await (next.length === 0 ? steps.finish() : steps.take(next)),
            };
          });
          await this.#recordAll(outcomes, batches.length);
          if (count === 0) break;
          progress.passed(count, digest);
          progress.soFar.seconds = (performance.now() - epochStart) / 1000;
          await nextTurn();
        }
      } finally {
        // After an abort or an error, steps already taken still count.
        const late = await steps.finish().catch(() => []);
        await this.#recordAll(
          late.filter(({ kind }) => kind === 'taken'),
          batches.length,
        );
        await batches.close();
      }
      await this.#finishEpoch(options);
      const reason = this.#over(options, limits);
      if (reason !== null) return reason;
    }
  }

  /** Why training is over; null if it is not. */
  #over({ signal }: FitOptions, limits: Limits): EndEvent['reason'] | null {
    return signal?.aborted === true ? 'aborted' : limits.reached(this.#progress, this.#seconds);
  }

  /** The batches of the current epoch that are still to be trained on. */
  async #enterEpoch(source: BatchSource): Promise<BatchReader> {
    const { epoch, soFar } = this.#progress;
    const batches = new BatchReader('Trainer.fit', 'train', source, epoch + 1);
    // A position within the epoch: what was taken before must come again, in the same order.
    if (soFar.batch > 0) await this.#progress.skip(batches);
    this.#enterTraining();
    this.#packs = isPackable(this.model);
    return batches;
  }

  /** Validates and saves if it is time to. */
  async #betweenSteps(options: FitOptions, limits: Limits, steps: Steps): Promise<void> {
    const { validation, validateEvery, signal } = options;
    const { saveEvery } = this.#options;
    const progress = this.#progress;
    const isDue = (every: number | undefined, step: number) =>
      every !== undefined && step > 0 && step % every === 0;
    const next = progress.step + 1;
    // Steps on a GPU are reported one late, which must not move the moment.
    if (next >= limits.steps || isDue(validateEvery, next) || isDue(saveEvery, next)) {
      await this.#recordAll(await steps.finish(), null);
    }
    const { step } = progress;
    const isLast = validateEvery !== undefined && limits.reached(progress, this.#seconds) !== null;
    const validates =
      validation !== undefined &&
      step !== progress.validatedAt &&
      (isDue(validateEvery, step) || (isLast && step > 0));
    const validated = validates ? await this.#validate(validation, options) : null;
    // A validation that was made is not made again: if it is the best, its model is saved now.
    if (validated !== null) await this.#save({ validated });
    else if (signal?.aborted !== true && isDue(saveEvery, step) && step !== this.#savedAt) {
      await this.#save();
    }
  }

  async #finishEpoch(options: FitOptions): Promise<void> {
    const { validation, validateEvery, signal } = options;
    const progress = this.#progress;
    const { soFar } = progress;
    const epoch = progress.epoch + 1;
    if (soFar.batch === 0) throw noBatches(epoch);
    // Without a validation, samples are shown at the end of each epoch.
    if (validation === undefined) await this.#showSamples(signal);
    const validates = validation !== undefined && validateEvery === undefined;
    const validated = validates ? await this.#validate(validation, options) : null;
    // The run ends here; when it is resumed, the validation is made again.
    if (validates && validated === null) return;
    const record: EpochRecord = {
      epoch,
      step: progress.step,
      trainLoss: soFar.mean.mean,
      validationLoss: validated?.loss ?? null,
      trainTokens: soFar.mean.tokens,
      validationTokens: validated?.tokens ?? 0,
      trainSeconds: soFar.seconds,
      validationSeconds: validated?.seconds ?? 0,
      skippedBatches: soFar.emptyBatches,
      skippedSteps: soFar.skippedSteps,
      best: validated?.best ?? false,
    };
    progress.finishEpoch();
    this.history.epochs.push(record);
    // Before the save, so that the log of a run that is killed after it has the epoch.
    await this.#listeners.emit('epoch', record);
    await this.#save({ validated });
    for (const warning of warningsOf(record)) this.#say(warning);
    const warning = progress.lossWatch.epoch(record.trainLoss);
    if (warning !== null) this.#say(warning);
  }

  /** @returns null if the signal stopped it */
  async #validate(source: BatchSource, options: FitOptions): Promise<ValidationRecord | null> {
    const progress = this.#progress;
    const { step } = progress;
    const epoch = progress.epoch + 1;
    const { validationBatches } = this.history;
    const before = validationBatches.length;
    const measured = await this.#withAverages(() =>
      validate(
        this.model,
        source,
        epoch,
        this.#validationSettings(options.signal),
        (batch, soFar) => {
          validationBatches.push({ epoch, ...batch });
          const { batch: done } = batch;
          this.#listeners.emitNow('validationBatch', { step, epoch, ...soFar, batch: done });
        },
      ),
    );
    if (measured === null) {
      validationBatches.length = before;
      return null;
    }
    // Whether the previous best was saved is known now.
    await this.#state?.settled();
    const best = progress.consider({ step, epoch, ...measured });
    const record: ValidationRecord = { step, epoch, ...measured, best };
    progress.validatedAt = step;
    this.history.validations.push(record);
    await this.#listeners.emit('validation', record);
    return record;
  }

  async #showSamples(signal: AbortSignal | undefined): Promise<void> {
    await this.#withAverages(() => showSamples(this.model, this.#validationSettings(signal)));
  }

  /** With the averages in the place of the weights. */
  async #withAverages<T>(measure: () => Promise<T>): Promise<T> {
    return this.#average === null ? measure() : this.#average.withAverages(measure);
  }

  #validationSettings(signal: AbortSignal | undefined) {
    const { specialIds, tokenizer, samples = [], scores } = this.#options;
    const say = (message: string) => this.#say(message);
    return { specialIds, tokenizer, samples, scores, signal, say };
  }

  async #save(moment: Partial<SaveMoment> = {}): Promise<void> {
    this.#progress.seconds = this.#seconds;
    this.#savedAt = this.#progress.step;
    await this.#state?.save({ validated: null, keeps: true, ...moment });
  }

  /** Whether the step after which the run ends would also be saved if the run went on. */
  #keepsLastStep(limits: Limits): boolean {
    const { saveEvery } = this.#options;
    const progress = this.#progress;
    const isDue = saveEvery !== undefined && progress.step % saveEvery === 0;
    return isDue || limits.reached(progress, this.#seconds) !== null;
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

  /** @param batches number of batches in the epoch, null if unknown */
  async #recordAll(outcomes: readonly StepOutcome[], batches: number | null): Promise<void> {
    for (const outcome of outcomes) {
      this.#record(outcome, batches);
      if (outcome.kind === 'taken') await this.#average?.updateAsync();
    }
  }

  #record(outcome: StepOutcome, batches: number | null): void {
    const progress = this.#progress;
    const { soFar } = progress;
    soFar.emptyBatches += outcome.empty;
    soFar.reported += outcome.batches;
    if (outcome.kind === 'empty') return;
    if (outcome.kind === 'skipped') {
      soFar.skippedSteps++;
      if (outcome.isOverflow !== true) this.#refuseNonFinite(outcome.fault);
      return;
    }
    const { lossSum, tokens, learningRate, gradientNorm } = outcome;
    soFar.mean.add(lossSum, tokens);
    const [step, epoch, loss] = [++progress.step, progress.epoch + 1, lossSum / tokens];
    const seconds = this.#seconds;
    const record = { step, epoch, loss, tokens, learningRate, gradientNorm, seconds };
    this.history.steps.push(record);
    this.#listeners.emitNow('step', {
      ...record,
      batch: soFar.reported,
      batches,
      epochLoss: soFar.mean.mean,
      epochTokens: soFar.mean.tokens,
    });
    const warning = progress.lossWatch.step(loss);
    if (warning !== null) this.#say(warning);
  }

  #refuseNonFinite(fault: string): void {
    const { epoch, step, soFar } = this.#progress;
    const place = `epoch ${epoch + 1}, batch ${soFar.reported}`;
    if (this.#options.nonFinite === 'skip') {
      this.#say(`${place}: ${fault}; the step was skipped`);
      return;
    }
    const parameter = faultyParameter(this.model);
    const saved = this.#state === null ? '' : ` and will be saved in ${this.#state.folder.last}`;
    throw new TorchError(
      'ERR_NON_FINITE',
      `Trainer.fit: ${fault} in ${place}; the step was not taken, so the model is as it was after step ` +
        `${step}${saved}.${parameter === null ? '' : ` The first such values are in ${parameter}.`} Try a ` +
        "smaller learningRate, a warmup or clip, or pass nonFinite: 'skip'",
    );
  }

  #makeSteps(): Steps {
    const { specialIds, dtype = 'float32', clip = Infinity } = this.#options;
    const { nonFinite, graphs = false, labelSmoothing, smoothingForm } = this.#options;
    const settings = {
      model: this.model,
      optimizer: this.optimizer,
      parameters: this.#parameters,
      pad: specialIds.pad,
      packs: () => this.#packs,
      dtype,
      clip,
      ...(labelSmoothing === undefined ? {} : { labelSmoothing }),
      ...(smoothingForm === undefined ? {} : { smoothingForm }),
      schedule: this.#schedule,
      stepsTaken: () => this.#progress.step,
    };
    const choice = { graphs, stopsAtFault: nonFinite !== 'skip' };
    return makeSteps(settings, choice, (message) => this.#say(message));
  }

  /** Limits count from where the earlier calls were to end, or did end if that was before. */
  #limits(options: FitOptions): Limits {
    const { epoch, step, seconds } = this.#progress;
    return new Limits(options, {
      epochs: Math.min(this.#planned.epochs, epoch),
      steps: Math.min(this.#planned.steps, step),
      minutes: Math.min(this.#planned.minutes, seconds / 60),
    });
  }

  async #emitStart({ epochs, steps }: Limits): Promise<void> {
    const { step, epoch, seconds } = this.#progress;
    const parameters = this.#parameters.reduce((sum, { numel }) => sum + numel, 0);
    const out = this.#state?.folder.path ?? null;
    await this.#listeners.emit('start', { step, epoch, seconds, epochs, steps, parameters, out });
  }

  /** Seconds of the run so far. */
  get #seconds(): number {
    return (performance.now() - this.#start) / 1000;
  }

  #say(message: string): void {
    this.#listeners.emitNow('message', message);
  }

  /** Frees the state of the trainer's own optimizer and all gradients, but not the model. */
  dispose(): void {
    this.optimizer.zeroGrad();
    this.#ownOptimizer?.dispose();
    this.#average?.dispose();
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
