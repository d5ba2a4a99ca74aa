/** Collects what the report shows of a run, from its events or from its files. */
import type {
  EpochRecord,
  SampleTranslation,
  StepRecord,
  ValidationRecord,
} from '../run/history.js';
import type { EndRecord, LogRecord, MessageRecord, StartRecord } from './logRecord.js';
import type {
  BestOfRun,
  Curve,
  RunReport,
  Sample,
  SampleSet,
  ValidationColumns,
} from './reportData.js';
import { readableTokens } from './readableTokens.js';
import { StepSpeed } from './stepSpeed.js';
import { roundedOrNull, ThinnedCurve, ThinnedList } from './thinning.js';

/** How much of a run is kept. */
export interface CollectorLimits {
  /** Parts of a curve. */
  readonly parts: number;
  /** Numbers of the attention of all samples. */
  readonly weights: number;
}

const sampleSets = 48;
const messageCount = 100;

/** What a run of one page is allowed; several share it. */
export function limitsFor(runs: number): CollectorLimits {
  const even = (value: number) => 2 * Math.floor(value / 2);
  return {
    parts: even(Math.max(200, Math.min(2000, 6000 / runs))),
    weights: Math.floor(250_000 / runs),
  };
}

/** Takes the records of one run in their order, in a fixed memory. */
export class RunCollector {
  readonly #limits: CollectorLimits;
  readonly #loss: ThinnedCurve;
  readonly #learningRate: ThinnedCurve;
  readonly #gradientNorm: ThinnedCurve;
  readonly #speed: ThinnedCurve;
  readonly #clock: ThinnedCurve;
  readonly #validations = new ThinnedList<ValidationRecord>(2000);
  readonly #samples = new ThinnedList<SampleSet>(sampleSets);
  readonly #epochs = new ThinnedList<EpochRecord>(400);
  readonly #starts: StartRecord[] = [];
  #messages: MessageRecord[] = [];
  #end: EndRecord | null = null;
  #best: ValidationRecord | null = null;
  #stepSpeed = new StepSpeed(0);
  #step = 0;
  #seconds = 0;
  #tokens = 0;

  constructor(limits: CollectorLimits) {
    const { parts } = limits;
    this.#limits = limits;
    this.#loss = new ThinnedCurve(parts);
    this.#learningRate = new ThinnedCurve(parts);
    this.#gradientNorm = new ThinnedCurve(parts);
    this.#speed = new ThinnedCurve(parts);
    this.#clock = new ThinnedCurve(200);
  }

  /** Steps so far. */
  get step(): number {
    return this.#step;
  }

  /** Takes a line of `log.jsonl`. */
  add(record: LogRecord): void {
    switch (record.event) {
      case 'start':
        return this.start(record);
      case 'step':
        return this.takeStep(record);
      case 'validation':
        return this.validation(record);
      case 'epoch':
        return this.epoch(record);
      case 'message':
        return this.message(record);
      case 'end':
        return this.end(record);
      case 'checkpoint':
    }
  }

  start(record: StartRecord): void {
    this.#starts.push(record);
    this.#end = null;
    this.#stepSpeed = new StepSpeed(record.seconds);
  }

  /** Records of old runs have neither a norm nor a time. */
  takeStep(record: Omit<StepRecord, 'gradientNorm' | 'seconds'> & Partial<StepRecord>): void {
    const { step, loss, learningRate, gradientNorm, tokens, seconds } = record;
    this.#step = step;
    this.#tokens += tokens;
    this.#loss.add(step, loss);
    this.#learningRate.add(step, learningRate);
    if (gradientNorm !== undefined) this.#gradientNorm.add(step, gradientNorm);
    if (seconds === undefined) return;
    this.#seconds = seconds;
    this.#speed.add(step, this.#stepSpeed.next({ tokens, seconds }));
    this.#clock.add(step, seconds);
  }

  validation(record: ValidationRecord): void {
    this.#stepSpeed.pause(record.seconds);
    // A resumed run repeats the validation that it was killed in.
    const { last } = this.#validations;
    const repeats = last?.step === record.step && last.epoch === record.epoch;
    if (repeats) this.#validations.replaceLast(record);
    else this.#validations.add(record);
    if (record.best) this.#best = record;
    const { step, epoch, samples } = record;
    if (samples.length === 0) return;
    const set = { step, epoch, samples: samples.map(sampleOf) };
    if (repeats && this.#samples.last?.step === step) this.#samples.replaceLast(set);
    else this.#samples.add(set);
  }

  epoch(record: EpochRecord): void {
    const { last } = this.#epochs;
    if (last?.epoch === record.epoch) this.#epochs.replaceLast(record);
    else this.#epochs.add(record);
  }

  message(record: MessageRecord): void {
    this.#messages.push(record);
    if (this.#messages.length > 2 * messageCount)
      this.#messages = this.#messages.slice(-messageCount);
  }

  end(record: EndRecord): void {
    this.#end = record;
  }

  /**
   * The report so far.
   *
   * @param settings as text, if the start of the run has none
   */
  report(name: string, settings: string | null = null): RunReport {
    const start = this.#starts.at(-1);
    const own = start?.settings ?? null;
    return {
      name,
      steps: this.#step,
      epochs: this.#epochs.last?.epoch ?? 0,
      seconds: this.#end?.seconds ?? this.#seconds,
      tokens: this.#tokens,
      parameters: roundedOrNull(start?.parameters),
      best: bestOf(this.#best, this.#epochs.elements()),
      end: this.#end,
      resumes: [...new Set(this.#starts.map((one) => one.step))].filter((step) => step > 0),
      loss: this.#loss.curve(),
      learningRate: this.#learningRate.curve(),
      gradientNorm: curveOrNull(this.#gradientNorm),
      speed: curveOrNull(this.#speed),
      clock: curveOrNull(this.#clock)?.points ?? null,
      validations: this.#validationColumns(),
      epochRows: this.#epochs.elements().map((record) => ({
        epoch: record.epoch,
        step: record.step,
        trainLoss: roundedOrNull(record.trainLoss),
        validationLoss: roundedOrNull(record.validationLoss),
        speed: roundedOrNull(record.trainTokens / record.trainSeconds),
        best: record.best,
      })),
      samples: withinBudget(this.#samples.elements(), this.#limits.weights),
      settings: own === null ? settings : JSON.stringify(own, null, 2),
      data: start?.data ?? [],
      hardware: start?.hardware ?? null,
      messages: this.#messages.slice(-messageCount).map(({ step, text }) => ({ step, text })),
    };
  }

  /** Old runs have no validations, but the losses of their epochs. */
  #validationColumns(): ValidationColumns {
    const records = this.#validations.elements();
    if (records.length === 0) {
      const epochs = this.#epochs.elements().filter((record) => record.validationLoss !== null);
      const none = epochs.map(() => null);
      return {
        step: epochs.map(({ step }) => step),
        loss: epochs.map(({ validationLoss }) => roundedOrNull(validationLoss)),
        accuracy: none,
        bleu: none,
        chrf: none,
      };
    }
    const column = (name: 'loss' | 'accuracy' | 'bleu' | 'chrf') =>
      records.map((record) => roundedOrNull(record[name]));
    return {
      step: records.map(({ step }) => step),
      loss: column('loss'),
      accuracy: column('accuracy'),
      bleu: column('bleu'),
      chrf: column('chrf'),
    };
  }
}

function curveOrNull(curve: ThinnedCurve): Curve | null {
  return curve.isEmpty ? null : curve.curve();
}

function bestOf(best: ValidationRecord | null, epochs: readonly EpochRecord[]): BestOfRun | null {
  if (best !== null) {
    const { step, epoch, loss, bleu, chrf } = best;
    return { step, epoch, loss: roundedOrNull(loss), bleu, chrf };
  }
  const record = epochs.findLast((one) => one.best && one.validationLoss !== null);
  if (record === undefined) return null;
  const { step, epoch, validationLoss } = record;
  return { step, epoch, loss: roundedOrNull(validationLoss), bleu: null, chrf: null };
}

function sampleOf(sample: SampleTranslation): Sample {
  const { source, translation, reference, attention } = sample;
  return { source, translation, reference, attention: attentionOf(attention) };
}

function attentionOf(attention: SampleTranslation['attention']): Sample['attention'] {
  if (attention === null || attention.targetTokens.length === 0) return null;
  const { sourceTokens, targetTokens, weights } = attention;
  const tokens = readableTokens([...sourceTokens, ...targetTokens]);
  return {
    sourceTokens: tokens.slice(0, sourceTokens.length),
    targetTokens: tokens.slice(sourceTokens.length),
    percent: weights.map((row) => row.map((weight) => Math.round(100 * weight))),
  };
}

/** With the attention of so many evenly spaced validations that the page stays small. */
function withinBudget(sets: readonly SampleSet[], weights: number): SampleSet[] {
  const sizes = sets.map(({ samples }) =>
    samples.reduce((sum, { attention }) => sum + sizeOf(attention), 0),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const stride = Math.max(1, Math.ceil(total / weights));
  const last = sets.length - 1;
  return sets.map((set, index) =>
    (last - index) % stride === 0
      ? set
      : { ...set, samples: set.samples.map((sample) => ({ ...sample, attention: null })) },
  );
}

function sizeOf(attention: Sample['attention']): number {
  return attention === null ? 0 : attention.sourceTokens.length * attention.targetTokens.length;
}
