/** Writes the events of a training run to `log.jsonl`. */
import { dirname } from 'node:path';
import { rename, stat } from 'node:fs/promises';
import { checkReport, type DataReport } from '../../data/report.js';
import { saveFault } from '../../io/atomicFile.js';
import {
  checkArray,
  checkFunction,
  checkInteger,
  checkObject,
  checkOptions,
  checkPath,
  checkRequiredOptions,
} from '../../runtime/arguments.js';
import { makeFolder } from '../../runtime/makeFolder.js';
import { TorchError } from '../../runtime/errors.js';
import type {
  CheckpointEvent,
  EndEvent,
  StartEvent,
  StepEvent,
  TrainingListener,
} from '../run/events.js';
import type { EpochRecord, ValidationRecord } from '../run/history.js';
import { GrowingFile } from './growingFile.js';
import { describeHardware } from './hardware.js';
import { bytesUpToStep } from './logReader.js';
import { logLine, messageOf, stepLine, summaryOf, type DataSummary } from './logRecord.js';

/** Options of {@link JsonLinesLog}. */
export interface JsonLinesLogOptions {
  /** The file, usually `log.jsonl` in the folder of the run. */
  path: string;
  /** The settings of the run, to be kept with it: any object that JSON can represent. */
  settings?: Readonly<Record<string, unknown>>;
  /** Reports on the data that the run reads. */
  data?: readonly DataReport[];
  /** Receives a warning if the file cannot be written. Default: `process.emitWarning`. */
  warn?: (message: string) => void;
}

/**
 * A listener that writes each event as one line of JSON, except those of single validation batches:
 * `{"event":"step","step":1,"epoch":1,"loss":8.9,…}`. {@link readLog} reads them.
 *
 * A step takes about a microsecond: lines are collected, and written at the latest after two seconds,
 * and at each validation, epoch and checkpoint. When a run is resumed, lines after the step from which it
 * continues are removed, and so is one that was torn when the run was killed.
 */
export class JsonLinesLog implements TrainingListener {
  /** The file. */
  readonly path: string;
  readonly #settings: Readonly<Record<string, unknown>> | null;
  readonly #data: readonly DataSummary[];
  readonly #warn: (message: string) => void;
  #file: GrowingFile | null = null;
  #step = 0;
  /** Of messages before the start. */
  #early: string[] = [];

  /** @throws TypeError if an option is invalid */
  constructor(options: JsonLinesLogOptions) {
    const owner = 'JsonLinesLog';
    checkRequiredOptions(owner, options, ['path', 'settings', 'data', 'warn'], 'path');
    const { path, settings, data = [], warn = (message) => process.emitWarning(message) } = options;
    this.path = checkPath(owner, 'path', path);
    if (settings !== undefined) checkObject(owner, 'settings', settings, 'an object');
    checkArray(owner, 'data', data, 'an array of data reports');
    for (const report of data) checkReport(owner, report);
    checkFunction(owner, 'warn', warn);
    this.#settings = settings ?? null;
    this.#data = data.map(summaryOf);
    this.#warn = warn;
  }

  /**
   * Opens the file. The event `start` does this by itself.
   *
   * @param options `step`: continues after this step, and removes the lines after it; 0, the default,
   *   begins a new log in place of an old one
   * @throws TypeError, RangeError if `step` is invalid
   * @throws TorchError ERR_CHECKPOINT if the file cannot be written, ERR_DATA naming the line if it is
   *   continued and cannot be read
   */
  async open(options: { step?: number } = {}): Promise<void> {
    checkOptions('JsonLinesLog.open', options, ['step']);
    const step = checkInteger('JsonLinesLog.open', 'step', options.step ?? 0, 0);
    await this.#close();
    try {
      await makeFolder(dirname(this.path));
      const continues = step > 0 && (await exists(this.path));
      const length = continues ? await bytesUpToStep(this.path, step) : 0;
      this.#file = await GrowingFile.open(this.path, continues ? 'r+' : 'w', length, this.#warn);
    } catch (error) {
      if (error instanceof TorchError) throw error;
      throw saveFault(this.path, error);
    }
    this.#step = step;
  }

  /**
   * Begins or continues the log. One that cannot be read does not keep a run from being resumed: it is
   * kept under another name, with a warning, and a new one begins.
   *
   * @throws TorchError ERR_CHECKPOINT if the file cannot be written
   */
  async start(event: StartEvent): Promise<void> {
    try {
      await this.open({ step: event.step });
    } catch (error) {
      if (!(error instanceof TorchError) || error.code !== 'ERR_DATA') throw error;
      await this.#setAside(error);
      await this.open();
    }
    this.#step = event.step;
    const record = {
      ...event,
      time: new Date().toISOString(),
      settings: this.#settings,
      data: this.#data,
      hardware: describeHardware(),
    };
    this.#file?.append(logLine('start', record));
    for (const text of this.#early) this.message(text);
    this.#early = [];
    await this.flush();
  }

  /** Records a step. */
  step(event: StepEvent): void {
    this.#step = event.step;
    this.#file?.append(stepLine(event));
  }

  /** Records a validation. */
  validation(record: ValidationRecord): Promise<void> {
    this.#file?.append(logLine('validation', record));
    return this.flush();
  }

  /** Records an epoch. */
  epoch(record: EpochRecord): Promise<void> {
    this.#file?.append(logLine('epoch', record));
    return this.flush();
  }

  /** Records a saved model. */
  checkpoint(event: CheckpointEvent): Promise<void> {
    this.#file?.append(logLine('checkpoint', event));
    return this.flush();
  }

  /** Records a message. */
  message(text: string): void {
    if (this.#file === null) this.#early.push(text);
    else this.#file.append(logLine('message', { step: this.#step, text }));
  }

  /** Records the end and closes the file. @throws as {@link JsonLinesLog.close} */
  async end(event: EndEvent): Promise<void> {
    const { step, epoch, seconds, reason } = event;
    this.#file?.append(
      logLine('end', { step, epoch, seconds, reason, error: messageOf(event.error) }),
    );
    await this.close();
  }

  /** Hands all lines to the system, so that they survive the process. Never rejects. */
  async flush(): Promise<void> {
    await this.#file?.flush();
  }

  /** Closes the file. @throws TorchError ERR_CHECKPOINT if the last lines could not be written */
  async close(): Promise<void> {
    await this.#close();
  }

  async #setAside(fault: TorchError): Promise<void> {
    const kept = `${this.path}.damaged`;
    await rename(this.path, kept);
    this.#warn(`warning: ${fault.message}. It is now ${kept}, and a new log begins`);
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
