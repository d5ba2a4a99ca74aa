/** Progress reports of a training run. */
import { checkFunction, checkMethods } from '../../runtime/arguments.js';
import type { StartEvent, StepEvent, TrainingListener, ValidationBatchEvent } from './events.js';
import type { EpochRecord, ValidationRecord } from './history.js';
import { clockTime, ProgressLine, type ProgressStream } from './progressLine.js';

export type { ProgressStream } from './progressLine.js';

const barWidth = 24;

/**
 * Writes the progress to a stream: on a terminal, one line that is rewritten, with the loss, target
 * tokens per second and the time left; otherwise a line every 30 seconds. Both write a line per epoch,
 * and per validation within an epoch.
 */
export class ProgressBar implements TrainingListener {
  readonly #line: ProgressLine;
  readonly #now: () => number;
  #run: Pick<StartEvent, 'epochs' | 'steps' | 'step' | 'epoch'> = {
    epochs: Infinity,
    steps: Infinity,
    step: 0,
    epoch: 0,
  };
  #start: number;
  /** When the work on the first batch of the current part began. */
  #partStart: number;
  #part = '';
  /** Tokens of the epoch that were done when the part began. */
  #tokensBefore = 0;
  #lastEvent: number;
  #latest: StepEvent | null = null;
  #batchesPerEpoch: number | null = null;
  /** Batches of the epoch that were done when the run was resumed. */
  #batchesBefore = 0;

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
    this.#lastEvent = this.#start;
    this.#partStart = this.#start;
  }

  /** Starts the clock, and says where a resumed run continues. */
  start(event: StartEvent): void {
    this.#run = event;
    this.#start = this.#lastEvent = this.#partStart = this.#now();
    if (event.step > 0) this.message(`continuing after step ${event.step}`);
  }

  /** Updates the line. */
  step(event: StepEvent): void {
    const now = this.#enterPart(`train ${event.epoch}`, event.epochTokens - event.tokens);
    if (this.#latest === null) this.#batchesBefore = event.batch - 1;
    this.#latest = event;
    this.#batchesPerEpoch = event.batches ?? this.#batchesPerEpoch;
    const { epoch, batch, batches, epochLoss: loss, epochTokens: tokens } = event;
    const shown = { label: `epoch ${this.#ofAll(epoch)}`, batch, batches, loss, tokens };
    this.#line.update(() => this.#describe(shown, now), isLastOf(event));
  }

  /** Updates the line. */
  validationBatch(event: ValidationBatchEvent): void {
    const now = this.#enterPart(`validation ${event.step}`, 0);
    const shown = { ...event, label: `validation ${this.#ofAll(event.epoch)}` };
    this.#line.update(() => this.#describe(shown, now), isLastOf(event));
  }

  /** Writes a line of its own for scores, and for a validation within an epoch. */
  validation({ step, loss, best, bleu, chrf, seconds }: ValidationRecord): void {
    this.#lastEvent = this.#now();
    const isWithinEpoch = this.#latest !== null && !isLastOf(this.#latest);
    const scores = [
      ...(bleu === null ? [] : [`BLEU ${bleu.toFixed(2)}`]),
      ...(chrf === null ? [] : [`chrF ${chrf.toFixed(2)}`]),
    ];
    // At the end of an epoch, its line has the loss.
    if (!isWithinEpoch && scores.length === 0) return;
    const parts = [`step ${step}`, `validation ${loss.toFixed(4)}${best ? ' (best)' : ''}`];
    this.message([...parts, ...scores, clockTime(seconds)].join('  '));
  }

  /** Writes the epoch's losses, speed and time. */
  epoch(record: EpochRecord): void {
    const seconds = record.trainSeconds;
    const validation =
      record.validationLoss === null ? '' : `  validation ${record.validationLoss.toFixed(4)}`;
    this.message(
      `epoch ${this.#ofAll(record.epoch)}  train ${record.trainLoss.toFixed(4)}${validation}` +
        `${record.best ? ' (best)' : ''}  ${tokensPerSecond(record.trainTokens, seconds)}` +
        `  ${clockTime(seconds + record.validationSeconds)}`,
    );
  }

  message(text: string): void {
    this.#line.message(text);
  }

  /** Removes the line. */
  end(): void {
    this.#line.clear();
  }

  /** @param tokensBefore tokens of the part before its first event */
  #enterPart(part: string, tokensBefore: number): number {
    if (part !== this.#part) {
      this.#part = part;
      this.#tokensBefore = tokensBefore;
      // Work on the first batch of a part began after the last event of the previous part.
      this.#partStart = this.#lastEvent;
    }
    this.#lastEvent = this.#now();
    return this.#lastEvent;
  }

  #ofAll(epoch: number): string {
    const { epochs } = this.#run;
    return Number.isFinite(epochs) ? `${epoch}/${epochs}` : `${epoch}`;
  }

  #describe({ label, batch, batches, loss, tokens }: ShownPart, now: number): string {
    const count = batches === null ? `${batch}` : `${batch}/${batches}`;
    const speed = tokensPerSecond(tokens - this.#tokensBefore, (now - this.#partStart) / 1000);
    const left = this.#timeLeft(now);
    const figures = `${count}  loss ${loss.toFixed(4)}  ${speed}${left === null ? '' : `  ${left} left`}`;
    // The bar takes the room that the numbers leave on the line.
    const room = Math.min(
      barWidth,
      this.#line.width - label.length - figures.length - ' [] '.length,
    );
    const bar = batches === null || room < 4 ? '' : ` ${drawBar(batch / batches, room)}`;
    return `${label}${bar} ${figures}`;
  }

  /** Estimates the time left from the share done: of all steps, or of all batches. */
  #timeLeft(now: number): string | null {
    const latest = this.#latest;
    if (latest === null) return null;
    const { epochs, steps, step, epoch } = this.#run;
    const shares: number[] = [];
    if (Number.isFinite(steps)) shares.push((latest.step - step) / (steps - step));
    const perEpoch = this.#batchesPerEpoch;
    if (Number.isFinite(epochs) && perEpoch !== null) {
      const before = epoch * perEpoch + this.#batchesBefore;
      const done = (latest.epoch - 1) * perEpoch + latest.batch;
      shares.push((done - before) / (epochs * perEpoch - before));
    }
    if (shares.length === 0) return null;
    // The limit that is reached first.
    const share = Math.max(...shares);
    return clockTime(((now - this.#start) / 1000) * (1 / share - 1));
  }
}

interface ShownPart {
  readonly label: string;
  readonly batch: number;
  readonly batches: number | null;
  readonly loss: number;
  readonly tokens: number;
}

function isLastOf({ batch, batches }: { batch: number; batches: number | null }): boolean {
  return batches !== null && batch >= batches;
}

function drawBar(share: number, width: number): string {
  const full = Math.min(width, Math.round(share * width));
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}

function tokensPerSecond(tokens: number, seconds: number): string {
  const speed = seconds > 0 ? Math.round(tokens / seconds) : 0;
  return `${speed.toLocaleString('en-US')} tokens/s`;
}
