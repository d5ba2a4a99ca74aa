/** Writes the curves of a training run for TensorBoard. */
import { readdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { saveFault } from '../../../io/atomicFile.js';
import {
  checkFunction,
  checkInteger,
  checkObject,
  checkPath,
  checkRequiredOptions,
} from '../../../runtime/arguments.js';
import { makeFolder } from '../../../runtime/makeFolder.js';
import type { StartEvent, StepEvent, TrainingListener } from '../../run/events.js';
import type { SampleTranslation, ValidationRecord } from '../../run/history.js';
import { GrowingFile } from '../growingFile.js';
import { StepSpeed } from '../stepSpeed.js';
import {
  restartRecord,
  summaryRecord,
  versionRecord,
  type ScalarValue,
  type TextValue,
} from './eventRecords.js';

/** Options of {@link TensorBoardWriter}. */
export interface TensorBoardWriterOptions {
  /** The folder of the event files, usually that of the run. */
  folder: string;
  /** The settings of the run, shown as a text. */
  settings?: Readonly<Record<string, unknown>>;
  /** Steps from one point of the curves to the next, default 1. */
  every?: number;
  /** Receives a warning if the file cannot be written. Default: `process.emitWarning`. */
  warn?: (message: string) => void;
}

/**
 * A listener that writes a file `events.out.tfevents.…` for TensorBoard: `tensorboard --logdir runs`.
 *
 * Scalars: `train/loss`, `train/learning_rate`, `train/gradient_norm`, `train/tokens_per_second`;
 * `validation/loss`, `validation/perplexity`, and where they are measured, `validation/accuracy`,
 * `validation/bleu` and `validation/chrf`. Texts: `samples` and `settings`.
 *
 * Each training has a file of its own. When a run is resumed, TensorBoard no longer shows what earlier
 * files have after the step from which it continues.
 */
export class TensorBoardWriter implements TrainingListener {
  /** The folder of the event files. */
  readonly folder: string;
  readonly #settings: Readonly<Record<string, unknown>> | null;
  readonly #every: number;
  readonly #warn: (message: string) => void;
  #file: GrowingFile | null = null;
  #speed = new StepSpeed(0);

  /** @throws TypeError, RangeError if an option is invalid */
  constructor(options: TensorBoardWriterOptions) {
    const owner = 'TensorBoardWriter';
    checkRequiredOptions(owner, options, ['folder', 'settings', 'every', 'warn'], 'folder');
    const {
      folder,
      settings,
      every = 1,
      warn = (message) => process.emitWarning(message),
    } = options;
    this.folder = checkPath(owner, 'folder', folder);
    if (settings !== undefined) checkObject(owner, 'settings', settings, 'an object');
    this.#settings = settings ?? null;
    this.#every = checkInteger(owner, 'every', every, 1);
    checkFunction(owner, 'warn', warn);
    this.#warn = warn;
  }

  /** The current file; null before the start and after the end. */
  get path(): string | null {
    return this.#file?.path ?? null;
  }

  /** Begins a file. @throws TorchError ERR_CHECKPOINT if it cannot be written */
  async start(event: StartEvent): Promise<void> {
    await this.close();
    const { step, seconds } = event;
    try {
      await makeFolder(this.folder);
      const path = join(this.folder, await nextName(this.folder));
      this.#file = await GrowingFile.open(path, 'wx', 0, this.#warn);
    } catch (error) {
      throw saveFault(this.folder, error);
    }
    this.#speed = new StepSpeed(seconds);
    this.#file.append(versionRecord(now()));
    // A new run must also replace the curves of one that had this folder before.
    this.#file.append(restartRecord(now(), step === 0 ? 0 : step + 1));
    if (this.#settings !== null) {
      const text = asCode(JSON.stringify(this.#settings, null, 2));
      this.#add(step, [{ tag: 'settings', text }]);
    }
    await this.#file.flush();
  }

  /** Adds the points of a step. */
  step(event: StepEvent): void {
    const speed = this.#speed.next(event);
    if (event.step % this.#every !== 0) return;
    this.#add(event.step, [
      { tag: 'train/loss', value: event.loss },
      { tag: 'train/learning_rate', value: event.learningRate },
      { tag: 'train/gradient_norm', value: event.gradientNorm },
      ...(Number.isNaN(speed) ? [] : [{ tag: 'train/tokens_per_second', value: speed }]),
    ]);
  }

  /** Adds the points and the samples of a validation. */
  async validation(record: ValidationRecord): Promise<void> {
    const { step, loss, perplexity, accuracy, bleu, chrf, samples } = record;
    this.#speed.pause(record.seconds);
    this.#add(step, [
      { tag: 'validation/loss', value: loss },
      { tag: 'validation/perplexity', value: perplexity },
      ...(accuracy === null ? [] : [{ tag: 'validation/accuracy', value: accuracy }]),
      ...(bleu === null ? [] : [{ tag: 'validation/bleu', value: bleu }]),
      ...(chrf === null ? [] : [{ tag: 'validation/chrf', value: chrf }]),
      ...(samples.length === 0 ? [] : [{ tag: 'samples', text: sampleTable(samples) }]),
    ]);
    await this.#file?.flush();
  }

  /** Closes the file. @throws as {@link TensorBoardWriter.close} */
  async end(): Promise<void> {
    await this.close();
  }

  /** Closes the file. @throws TorchError ERR_CHECKPOINT if the last records could not be written */
  async close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  #add(step: number, values: readonly (ScalarValue | TextValue)[]): void {
    this.#file?.append(summaryRecord(now(), step, values));
  }
}

function now(): number {
  return Date.now() / 1000;
}

let filesOfThisProcess = 0;

/**
 * TensorBoard reads the files of a folder in the order of their names, so the time in the name is later than
 * those of the files there, whatever the clock says.
 */
async function nextName(folder: string): Promise<string> {
  const times = (await readdir(folder)).map((name) =>
    Number(/^events\.out\.tfevents\.(\d+)\./.exec(name)?.[1] ?? 0),
  );
  const time = times.reduce(
    (latest, one) => Math.max(latest, one + 1),
    Math.floor(Date.now() / 1000),
  );
  const place = `${hostname()}.${process.pid}.${filesOfThisProcess++}`;
  return `events.out.tfevents.${String(time).padStart(10, '0')}.${place}`;
}

/** Indented, so that nothing in it is Markdown. */
function asCode(text: string): string {
  return text.replaceAll(/^/gm, '    ');
}

function sampleTable(samples: readonly SampleTranslation[]): string {
  const rows = samples.map(({ source, translation, reference }) =>
    [source, translation, reference ?? ''].map(cell).join(' | '),
  );
  return ['source | translation | reference', '--- | --- | ---', ...rows].join('\n');
}

/** A text as a cell of a table in Markdown. */
function cell(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\\`*_{}[\]()<>#+\-.!|&~]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
