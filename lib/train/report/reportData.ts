/** What `report.html` contains: the data that its page shows. */
import type { DataSummary } from './logRecord.js';
import type { Hardware } from './hardware.js';

/** Points of a curve, with gaps where a value is null. */
export interface Points {
  /** Steps, ascending. */
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
}

/** A curve of a run with a value for each step, thinned if it is long. */
export interface Curve {
  /** Values as recorded; of a long run the least and the greatest of each of its parts. */
  readonly points: Points;
  /** The mean of each part; null if the parts are single steps. */
  readonly means: Points | null;
}

/** The validations of a run, as columns. */
export interface ValidationColumns {
  readonly step: readonly number[];
  readonly loss: readonly (number | null)[];
  readonly accuracy: readonly (number | null)[];
  readonly bleu: readonly (number | null)[];
  readonly chrf: readonly (number | null)[];
}

/** One epoch, as a row of a table. */
export interface EpochRow {
  readonly epoch: number;
  readonly step: number;
  readonly trainLoss: number | null;
  readonly validationLoss: number | null;
  /** Target tokens per second. */
  readonly speed: number | null;
  readonly best: boolean;
}

/** Samples of one validation. */
export interface SampleSet {
  readonly step: number;
  readonly epoch: number;
  readonly samples: readonly Sample[];
}

/** A translation made during training. */
export interface Sample {
  readonly source: string;
  readonly translation: string;
  readonly reference: string | null;
  readonly attention: SampleAttention | null;
}

/** Cross-attention of a sample. */
export interface SampleAttention {
  readonly sourceTokens: readonly string[];
  readonly targetTokens: readonly string[];
  /** Percentages, `[target tokens][source tokens]`. */
  readonly percent: readonly (readonly number[])[];
}

/** The best validation of a run. */
export interface BestOfRun {
  readonly step: number;
  readonly epoch: number;
  readonly loss: number | null;
  readonly bleu: number | null;
  readonly chrf: number | null;
}

/** One run. */
export interface RunReport {
  readonly name: string;
  readonly steps: number;
  readonly epochs: number;
  /** Seconds of training. */
  readonly seconds: number;
  readonly tokens: number;
  readonly parameters: number | null;
  readonly best: BestOfRun | null;
  /** How it ended; null if it is running or was killed. */
  readonly end: { readonly reason: string; readonly error: string | null } | null;
  /** Steps from which it was resumed. */
  readonly resumes: readonly number[];
  readonly loss: Curve;
  readonly learningRate: Curve;
  /** Null for runs that did not record it. */
  readonly gradientNorm: Curve | null;
  /** Target tokens per second. */
  readonly speed: Curve | null;
  /** Seconds of training at some of the steps. */
  readonly clock: Points | null;
  readonly validations: ValidationColumns;
  readonly epochRows: readonly EpochRow[];
  readonly samples: readonly SampleSet[];
  /** As text: YAML or JSON. */
  readonly settings: string | null;
  readonly data: readonly DataSummary[];
  readonly hardware: Hardware | null;
  readonly messages: readonly { readonly step: number; readonly text: string }[];
}

/** All of the page. */
export interface ReportData {
  /** When, in ISO 8601. */
  readonly made: string;
  readonly runs: readonly RunReport[];
}
