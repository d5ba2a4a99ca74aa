/** What training tells while it runs. */
import { checkFunction, checkMethods } from '../../runtime/arguments.js';
import type { EpochRecord } from './history.js';
import { clockTime, ProgressLine, type ProgressStream } from './progressLine.js';

export type { ProgressStream } from './progressLine.js';

/** What a reporter hears after a batch. */
export interface BatchProgress {
  /** Which data the batch is of. */
  readonly part: 'train' | 'validation';
  /** The epoch that runs, from 1. */
  readonly epoch: number;
  /** The last epoch that this training will have. */
  readonly epochs: number;
  /** Batches of this part done in this epoch. */
  readonly batch: number;
  /** Batches of this part in an epoch, null while unknown. */
  readonly batches: number | null;
  /** Token mean of the part in this epoch so far. */
  readonly loss: number;
  /** Target tokens of the part in this epoch so far. */
  readonly tokens: number;
}

/** Takes the news of a training run. Its methods must be quick: they run between steps. */
export interface TrainingReporter {
  /** A batch is done, be it of training or validation. */
  batch(progress: BatchProgress): void;
  /**
   * An epoch is done, validation and saving included.
   *
   * @param record its figures
   * @param epochs the last epoch that this training will have
   */
  epoch(record: EpochRecord, epochs: number): void;
  /** A sentence worth reading: a warning, a sample translation. */
  message(text: string): void;
  /** The run is over, whatever the reason. */
  finish(): void;
}

const barWidth = 24;

/**
 * Progress on a stream: on a terminal one line that is rewritten, with loss, target tokens a
 * second and the time left; elsewhere a line every 30 seconds. In both a line for each epoch.
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
   * @throws TypeError for a stream without `write`, or a clock that is no function
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
      // The first batch of a part has been worked on since the last batch of the part before.
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
    // The bar takes what the figures leave of the line.
    const room = Math.min(
      barWidth,
      this.#line.width - label.length - figures.length - ' [] '.length,
    );
    const bar = batches === null || room < 4 ? '' : ` ${drawBar(batch / batches, room)}`;
    return `${label}${bar} ${figures}`;
  }

  /** Of the whole run, from the share of its training batches that is done. */
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
