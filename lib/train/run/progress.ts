/** Progress reports of a training run. */
import { checkFunction, checkMethods } from '../../runtime/arguments.js';
import type { EpochRecord } from './history.js';
import { clockTime, ProgressLine, type ProgressStream } from './progressLine.js';

export type { ProgressStream } from './progressLine.js';

/** The progress reported after a batch. */
export interface BatchProgress {
  /** Which data the batch belongs to. */
  readonly part: 'train' | 'validation';
  /** The current epoch; counts from 1. */
  readonly epoch: number;
  /** The last epoch of this training. */
  readonly epochs: number;
  /** Number of batches of this part completed in this epoch. */
  readonly batch: number;
  /** Number of batches of this part in an epoch; null if unknown. */
  readonly batches: number | null;
  /** Token-mean loss of this part in this epoch so far. */
  readonly loss: number;
  /** Target tokens of this part in this epoch so far. */
  readonly tokens: number;
}

/** Receives the progress of a training run. Its methods must be fast: they run between steps. */
export interface TrainingReporter {
  /** Called after each batch of training or validation. */
  batch(progress: BatchProgress): void;
  /**
   * Called after each epoch, including its validation and saving.
   *
   * @param record the record of the epoch
   * @param epochs the last epoch of this training
   */
  epoch(record: EpochRecord, epochs: number): void;
  /** Called with a message for the user: a warning or a sample translation. */
  message(text: string): void;
  /** Called when the run ends, for whatever reason. */
  finish(): void;
}

const barWidth = 24;

/**
 * Writes the progress to a stream: on a terminal, one line that is rewritten, with the loss, target
 * tokens per second and the time left; otherwise a line every 30 seconds. Both write a line per epoch.
 */
export class ProgressBar implements TrainingReporter {
  readonly #line: ProgressLine;
  readonly #now: () => number;
  readonly #start: number;
  #lastBatch: number;
  #partStart: number;
  #part = '';
  #batchesPerEpoch: number | null = null;

  /**
   * @param stream default `process.stderr`
   * @param now clock in milliseconds, for tests; default `performance.now`
   * @throws TypeError if `stream` has no `write` method or `now` is not a function
   */
  constructor(
    stream: ProgressStream = process.stderr,
    now: () => number = () => performance.now(),
  ) {
    checkMethods('ProgressBar', 'stream', stream, ['write'], 'a stream such as process.stderr');
    checkFunction('ProgressBar', 'now', now, 'a function that returns milliseconds');
    this.#line = new ProgressLine(stream, now);
    this.#now = now;
    this.#start = now();
    this.#lastBatch = this.#start;
    this.#partStart = this.#start;
  }

  batch(progress: BatchProgress): void {
    const now = this.#now();
    const part = `${progress.part} ${progress.epoch}`;
    if (part !== this.#part) {
      this.#part = part;
      // Work on the first batch of a part began after the last batch of the previous part.
      this.#partStart = this.#lastBatch;
    }
    this.#lastBatch = now;
    if (progress.part === 'train') {
      this.#batchesPerEpoch = progress.batches ?? this.#batchesPerEpoch;
    }
    const isLast = progress.batches !== null && progress.batch >= progress.batches;
    this.#line.update(() => this.#describe(progress, now), isLast);
  }

  epoch(record: EpochRecord, epochs: number): void {
    const seconds = record.trainSeconds;
    const validation =
      record.validationLoss === null ? '' : `  validation ${record.validationLoss.toFixed(4)}`;
    this.message(
      `epoch ${record.epoch}/${epochs}  train ${record.trainLoss.toFixed(4)}${validation}` +
        `${record.best ? ' (best)' : ''}  ${tokensPerSecond(record.trainTokens, seconds)}` +
        `  ${clockTime(seconds + record.validationSeconds)}`,
    );
  }

  message(text: string): void {
    this.#line.message(text);
  }

  finish(): void {
    this.#line.clear();
  }

  #describe(progress: BatchProgress, now: number): string {
    const { part, epoch, epochs, batch, batches, loss, tokens } = progress;
    const count = batches === null ? `${batch}` : `${batch}/${batches}`;
    const speed = tokensPerSecond(tokens, (now - this.#partStart) / 1000);
    const label = part === 'train' ? `epoch ${epoch}/${epochs}` : `validation ${epoch}/${epochs}`;
    const left = this.#timeLeft(progress, now);
    const figures = `${count}  loss ${loss.toFixed(4)}  ${speed}${left === null ? '' : `  ${left} left`}`;
    // The bar takes the room that the numbers leave on the line.
    const room = Math.min(
      barWidth,
      this.#line.width - label.length - figures.length - ' [] '.length,
    );
    const bar = batches === null || room < 4 ? '' : ` ${drawBar(batch / batches, room)}`;
    return `${label}${bar} ${figures}`;
  }

  /** Estimates the time left for the whole run from the share of training batches completed. */
  #timeLeft({ part, epoch, epochs, batch, batches }: BatchProgress, now: number): string | null {
    const perEpoch = part === 'train' ? batches : this.#batchesPerEpoch;
    if (perEpoch === null) return null;
    const done = part === 'train' ? (epoch - 1) * perEpoch + batch : epoch * perEpoch;
    const elapsed = (now - this.#start) / 1000;
    return clockTime((elapsed / done) * (epochs * perEpoch - done));
  }
}

function drawBar(share: number, width: number): string {
  const full = Math.min(width, Math.round(share * width));
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}

function tokensPerSecond(tokens: number, seconds: number): string {
  const speed = seconds > 0 ? Math.round(tokens / seconds) : 0;
  return `${speed.toLocaleString('en-US')} tokens/s`;
}
