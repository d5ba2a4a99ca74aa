/** The state of a run on the disk: opened, saved and restored to the bit. */
import { mergedCopy } from '../../nn/finetuning/mergedCopy.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { Optimizer, type OptimizerState, type BaseSettings } from '../../optim/optimizer.js';
import type { Schedule } from '../../optim/schedule.js';
import { loadModel, modelContents, type SaveModelOptions } from '../../io/checkpoint.js';
import type { JsonValue } from '../../io/modelConfig.js';
import { TorchError } from '../../runtime/errors.js';
import { getRngState, setRngState } from '../../tensor/random.js';
import type { Tensor } from '../../tensor/tensor.js';
import { getNumThreads } from '../../tensor/threads.js';
import type { ExponentialMovingAverage } from '../averaging/exponentialMovingAverage.js';
import { JsonLinesLog } from '../report/jsonLinesLog.js';
import { ReportWriter } from '../report/reportWriter.js';
import { readLog } from '../report/readLog.js';
import type { LossScale } from '../steps/lossScale.js';
import type { FitOptions, TrainerOptions, TrainingOptimizer } from '../trainerOptions.js';
import type { CheckpointEvent, TrainingListener } from './events.js';
import type { History, ValidationRecord } from './history.js';
import type { RunFolder } from './runFolder.js';
import type { BestValidation, RunProgress } from './runProgress.js';
import { weightBytes } from './runRoom.js';
import { RunSaver } from './runSaver.js';
import { checkSameLimits, checkSameSettings, type Settings } from './settings.js';
import { readTraining, type SavedTraining, type TrainingState } from './trainingState.js';

/** The parts of a run that have a state. */
export interface RunParts {
  readonly model: Transformer;
  readonly options: TrainerOptions;
  readonly optimizer: TrainingOptimizer;
  readonly schedule: Schedule | null;
  /** Averages of the weights; null without. */
  readonly average: ExponentialMovingAverage | null;
  readonly progress: RunProgress;
  readonly history: History;
  readonly say: (message: string) => void;
  readonly saved: (event: CheckpointEvent) => Promise<void>;
}

/** What `best/` and `checkpoints/` hold. */
interface BestContents {
  readonly state: Map<string, Tensor>;
  readonly config: string;
  dispose(): void;
}

/** What has happened at the step that is saved. */
export interface SaveMoment {
  /** The validation at this step; null without one. */
  readonly validated: ValidationRecord | null;
  /** Whether the model may be kept in `checkpoints/`: not where a run was merely stopped. */
  readonly keeps: boolean;
}

/** The folder of a run and what is in it. */
export class RunState {
  readonly folder: RunFolder;
  /** Writes the events to `log.jsonl`, from which a resumed run has its history. */
  readonly log: JsonLinesLog;
  /** The log, and what reads it. */
  readonly listeners: readonly TrainingListener[];
  readonly #parts: RunParts;
  readonly #saver: RunSaver;
  #limits: Settings = {};
  /** The validation of the model in `best/`. */
  #savedBest: BestValidation | null = null;
  #lossScale: LossScale | null = null;
  /** Of the state that was restored, for the steps that are made later. */
  #savedLossScale: TrainingState['lossScale'] = null;

  constructor(folder: RunFolder, parts: RunParts) {
    this.folder = folder;
    this.#parts = parts;
    const { keepLast = 0, keepBest = 0, data } = parts.options;
    const kept = {
      settings: this.#settings(),
      ...(data === undefined ? {} : { data }),
      warn: parts.say,
    };
    this.log = new JsonLinesLog({ path: folder.log, ...kept });
    const { report = false } = parts.options;
    const page = report ? [new ReportWriter({ folder: folder.path, ...kept })] : [];
    this.listeners = [this.log, ...page];
    const retention = { last: keepLast, best: keepBest };
    this.#saver = new RunSaver(folder, retention, parts.say, parts.saved);
  }

  /**
   * Continues the run in the folder if `resume` asks for it and there is one; else begins a new one.
   *
   * @param limits of this call
   * @throws TorchError ERR_CHECKPOINT if the run cannot be continued, or the folder cannot be used
   */
  async open({ validation, extend = false }: FitOptions, limits: Settings): Promise<void> {
    const { options, model, progress } = this.#parts;
    const { overwrite = false, resume = false } = options;
    const saved = resume ? await readTraining(this.folder.last) : null;
    if (saved !== null) {
      try {
        await this.#restore(saved, limits, extend);
      } finally {
        for (const tensor of saved.tensors.values()) tensor.dispose();
      }
      await this.folder.clean(progress.step);
      await this.#bringReportsUpToDate();
      return;
    }
    // A run that was killed before its first `last/` may have left others: it starts anew.
    await this.folder.prepare(overwrite || resume, {
      weights: weightBytes(model),
      models: validation === undefined ? ['last'] : ['best', 'last'],
    });
    await this.folder.clean(0);
  }

  /** Called when the steps have been made. */
  begin(lossScale: LossScale | null, limits: Settings): void {
    this.#lossScale = lossScale;
    if (lossScale !== null && this.#savedLossScale !== null) lossScale.state = this.#savedLossScale;
    this.#limits = limits;
  }

  /** Saves the run as it is now. */
  async save({ validated, keeps }: SaveMoment): Promise<void> {
    const { model, options, optimizer, average, progress, history } = this.#parts;
    // Written before the model: a run that is resumed from it has its steps.
    await this.log.flush();
    const { specialIds, tokenizer, columns, select = 'loss' } = options;
    const { step, epoch } = progress;
    const value = validated?.[select] ?? null;
    const score = value === null ? null : select === 'loss' ? -value : value;
    const tensors = new Map<string, Tensor>([['random', getRngState()]]);
    let best: BestContents | null = null;
    try {
      let groups: JsonValue = [];
      if (optimizer instanceof Optimizer) {
        const state = optimizer.stateDict() as OptimizerState<BaseSettings>;
        groups = state.groups as unknown as JsonValue;
        for (const [name, tensor] of state.tensors) tensors.set(`optimizer.${name}`, tensor);
      }
      for (const [name, tensor] of average?.stateDict().tensors ?? []) {
        tensors.set(`average.${name}`, tensor);
      }
      const latest = history.epochs.at(-1);
      const saved: SaveModelOptions = {
        specialIds,
        ...(tokenizer === undefined ? {} : { tokenizer }),
        ...(columns === undefined ? {} : { columns }),
        training: {
          epoch,
          step,
          trainLoss: jsonNumber(latest?.trainLoss),
          validationLoss: jsonNumber(validated?.loss ?? latest?.validationLoss),
          bleu: validated?.bleu ?? null,
          chrf: validated?.chrf ?? null,
          score: jsonNumber(score),
        },
      };
      best = await this.#bestContents(saved);
      await this.#saver.save(model, {
        step,
        epoch,
        score,
        keeps,
        onBest: validated?.best === true ? this.#onBest(progress.best) : null,
        model: saved,
        state: {
          settings: this.#settings(),
          limits: this.#limits,
          threads: getNumThreads(),
          progress: progress.toJson(),
          groups,
          averageUpdates: average?.updates ?? 0,
          lossScale: this.#lossScale?.state ?? null,
        },
        tensors,
        best,
      });
      await this.#saver.attempt(() => this.folder.saveReports(history));
    } finally {
      for (const tensor of tensors.values()) tensor.dispose();
      best?.dispose();
    }
  }

  /** The model to translate with, if it is not the one that is trained. */
  async #bestContents(options: SaveModelOptions): Promise<BestContents | null> {
    const { model, average } = this.#parts;
    const merged =
      average === null ? mergedCopy(model) : await average.withAverages(() => mergedCopy(model));
    if (merged === null && average === null) return null;
    const { state, config } = modelContents('Trainer.fit', merged ?? model, options);
    const views = merged === null && average !== null ? average.modelState() : state;
    const dispose = () => {
      for (const tensor of [...state.values(), ...views.values()]) tensor.dispose();
      merged?.dispose();
    };
    return { state: views, config, dispose };
  }

  /** A best model that cannot be saved does not count: the next one is compared with what is there. */
  #onBest(best: BestValidation | null): (saved: boolean) => void {
    return (saved) => {
      if (saved) this.#savedBest = best;
      else this.#parts.progress.best = this.#savedBest;
    };
  }

  /** Waits for the save being written. */
  async settled(): Promise<void> {
    await this.#saver.settled();
  }

  /** @throws TorchError ERR_CHECKPOINT if the latest state was not saved */
  async finish(step: number): Promise<void> {
    await this.#saver.finish(step);
  }

  async #restore(saved: SavedTraining, limits: Settings, extend: boolean): Promise<void> {
    const { model, optimizer, average, progress, say } = this.#parts;
    const { state, tensors } = saved;
    checkSameSettings(this.folder.path, state.settings, this.#settings());
    checkSameLimits(this.folder.path, state.limits, limits, extend);
    const threads = getNumThreads();
    if (state.threads !== threads) {
      say(
        `warning: the run used ${state.threads} threads and is resumed with ${threads}: sums may differ ` +
          'in their last bits',
      );
    }
    // A state that does not fit is an error before the model changes.
    const found = prefixed(tensors, 'optimizer.');
    if (optimizer instanceof Optimizer) {
      const groups = state.groups as unknown as OptimizerState<BaseSettings>['groups'];
      optimizer.loadStateDict({ tensors: found, groups });
    }
    const training = model.training;
    await loadModel(this.folder.last, { model });
    model.train(training);
    const random = tensors.get('random');
    if (random === undefined) {
      throw new TorchError('ERR_CHECKPOINT', `${this.folder.last}: "random" is missing`);
    }
    setRngState(random);
    average?.loadStateDict({
      tensors: prefixed(tensors, 'average.'),
      updates: state.averageUpdates,
    });
    progress.restore(state.progress);
    this.#savedBest = progress.best;
    this.#savedLossScale = state.lossScale;
  }

  /** A run that was killed right after a save has reports that are older, also if it does no more steps. */
  async #bringReportsUpToDate(): Promise<void> {
    if (!(await this.#restoreHistory())) return;
    await this.#saver.attempt(() => this.folder.saveReports(this.#parts.history));
  }

  /** The records up to the saved step, which the log has. @returns whether they could be read */
  async #restoreHistory(): Promise<boolean> {
    const { history, progress, say } = this.#parts;
    try {
      const log = await readLog(this.folder.log);
      // One by one: a long run has more steps than a call may have arguments.
      for (const record of log.steps) {
        if (record.step <= progress.step) history.steps.push(record);
      }
      for (const record of log.validations) {
        if (record.step <= progress.validatedAt) history.validations.push(record);
      }
      for (const record of log.epochs) {
        if (record.epoch <= progress.epoch) history.epochs.push(record);
      }
      return true;
    } catch (error) {
      // The log is for people: training goes on without it.
      say(
        `warning: the earlier part of the run is missing in its history: ${(error as Error).message}`,
      );
      return false;
    }
  }

  /** What the run must be resumed with. */
  #settings(): Settings {
    const { options, optimizer, schedule } = this.#parts;
    const { accumulate = 1, clip = null, dtype = 'float32', nonFinite = 'stop' } = options;
    const { select = 'loss', labelSmoothing = 0, smoothingForm = 'crossEntropy' } = options;
    return {
      accumulate,
      clip: clip === null || clip === Infinity ? null : clip,
      dtype,
      labelSmoothing,
      ...(labelSmoothing === 0 ? {} : { smoothingForm }),
      nonFinite,
      select,
      averaging: averagingOf(this.#parts.average),
      optimizer: optimizer.constructor.name,
      learningRate: (this.#rates ??= ratesOf(schedule, optimizer)),
      ...options.settings,
    };
  }

  /** Read once, before the first step. */
  #rates: JsonValue | undefined = undefined;
}

function averagingOf(average: ExponentialMovingAverage | null): JsonValue {
  return average === null ? null : { decay: average.decay, warmup: average.warmup };
}

/** The rates of some steps, which show another schedule as well as another rate. */
function ratesOf(schedule: Schedule | null, optimizer: TrainingOptimizer): JsonValue {
  if (schedule !== null) {
    return Object.fromEntries(
      [1, 100, 1000, 10_000].map((step) => [`step ${step}`, schedule(step)]),
    );
  }
  return optimizer instanceof Optimizer
    ? (optimizer as Optimizer<BaseSettings>).paramGroups.map(({ lr }) => lr)
    : optimizer.lr;
}

/** The tensors whose name begins with a prefix, without it. */
function prefixed(tensors: ReadonlyMap<string, Tensor>, prefix: string): Map<string, Tensor> {
  const found = new Map<string, Tensor>();
  for (const [name, tensor] of tensors) {
    if (name.startsWith(prefix)) found.set(name.slice(prefix.length), tensor);
  }
  return found;
}

/** Null for a missing number, and for one that JSON does not have. */
function jsonNumber(value: number | null | undefined): number | null {
  return value === undefined || value === null || !Number.isFinite(value) ? null : value;
}
