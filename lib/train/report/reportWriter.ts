/** Keeps `report.html` in the folder of a run up to date while it trains. */
import { basename, join, resolve } from 'node:path';
import type { DataReport } from '../../data/report.js';
import { checkReport } from '../../data/report.js';
import {
  checkArray,
  checkFunction,
  checkObject,
  checkPath,
  checkRequiredOptions,
} from '../../runtime/arguments.js';
import type { EndEvent, StartEvent, StepEvent, TrainingListener } from '../run/events.js';
import type { EpochRecord, ValidationRecord } from '../run/history.js';
import { describeHardware } from './hardware.js';
import { messageOf, summaryOf, type DataSummary } from './logRecord.js';
import { limitsFor, RunCollector } from './runCollector.js';
import { readRun } from './readRun.js';
import { writePage } from './writeReport.js';

/** Options of {@link ReportWriter}. */
export interface ReportWriterOptions {
  /** The folder of the run. */
  folder: string;
  /** The settings of the run, to be shown. */
  settings?: Readonly<Record<string, unknown>>;
  /** Reports on the data that the run reads. */
  data?: readonly DataReport[];
  /** Receives a warning if the page cannot be written. Default: `process.emitWarning`. */
  warn?: (message: string) => void;
}

/** Milliseconds between pages that are written within an epoch. */
const pause = 30_000;

/**
 * A listener that writes `report.html` into the folder of a run: at the end of each epoch, after
 * validations within epochs (at most each half minute), and at the end. A page takes some milliseconds to
 * make and is written while the training goes on. It needs a fixed amount of memory, however long the run is.
 *
 * A resumed run shows what was before from the `log.jsonl` of the folder, so a {@link JsonLinesLog} should
 * be added before.
 */
export class ReportWriter implements TrainingListener {
  /** The page. */
  readonly path: string;
  readonly #folder: string;
  readonly #settings: Readonly<Record<string, unknown>> | null;
  readonly #data: readonly DataSummary[];
  readonly #warn: (message: string) => void;
  #run: RunCollector = new RunCollector(limitsFor(1));
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  #written = -Infinity;

  /** @throws TypeError if an option is invalid */
  constructor(options: ReportWriterOptions) {
    const owner = 'ReportWriter';
    checkRequiredOptions(owner, options, ['folder', 'settings', 'data', 'warn'], 'folder');
    const {
      folder,
      settings,
      data = [],
      warn = (message) => process.emitWarning(message),
    } = options;
    this.#folder = checkPath(owner, 'folder', folder);
    if (settings !== undefined) checkObject(owner, 'settings', settings, 'an object');
    checkArray(owner, 'data', data, 'an array of data reports');
    for (const report of data) checkReport(owner, report);
    checkFunction(owner, 'warn', warn);
    this.path = join(folder, 'report.html');
    this.#settings = settings ?? null;
    this.#data = data.map(summaryOf);
    this.#warn = warn;
  }

  /** Begins, or reads what was before. */
  async start(event: StartEvent): Promise<void> {
    this.#run = new RunCollector(limitsFor(1));
    if (event.step > 0) await this.#readEarlier(event.step);
    this.#run.start({
      ...event,
      time: new Date().toISOString(),
      settings: this.#settings,
      data: this.#data,
      hardware: describeHardware(),
    });
  }

  /** Takes a step. */
  step(event: StepEvent): void {
    this.#run.takeStep(event);
  }

  /** Takes a validation. */
  validation(record: ValidationRecord): void {
    this.#run.validation(record);
    if (performance.now() - this.#written >= pause) this.#write();
  }

  /** Takes an epoch and writes the page, without waiting for the disk. */
  epoch(record: EpochRecord): void {
    this.#run.epoch(record);
    this.#write();
  }

  /** Takes a message. */
  message(text: string): void {
    this.#run.message({ step: this.#run.step, text });
  }

  /** Writes the page and waits for it. */
  async end(event: EndEvent): Promise<void> {
    const { step, epoch, seconds, reason } = event;
    this.#run.end({ step, epoch, seconds, reason, error: messageOf(event.error) });
    await this.#writing;
    this.#write();
    await this.#writing;
  }

  /** A page that cannot show what was before is better than no training. */
  async #readEarlier(step: number): Promise<void> {
    try {
      this.#run = await readRun(this.#folder, limitsFor(1), step);
    } catch (error) {
      this.#warn(`report.html begins at step ${step}: ${(error as Error).message}`);
    }
  }

  #write(): void {
    // The next page will have what this one would.
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#written = performance.now();
    const run = this.#run.report(basename(resolve(this.#folder)));
    this.#writing = writePage(this.path, { made: new Date().toISOString(), runs: [run] })
      .catch((error: unknown) => this.#warn((error as Error).message))
      .finally(() => (this.#isWriting = false));
  }
}
