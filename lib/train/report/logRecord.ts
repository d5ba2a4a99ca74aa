/** The lines of `log.jsonl`: one JSON object for each event of a training run. */
import { inspect } from 'node:util';
import type { DataReport } from '../../data/report.js';
import { describeReport } from '../../data/report.js';
import { TorchError } from '../../runtime/errors.js';
import type { CheckpointEvent, EndEvent, StartEvent, StepEvent } from '../run/events.js';
import type { EpochRecord, StepRecord, ValidationRecord } from '../run/history.js';
import type { Hardware } from './hardware.js';

/** The pairs that a run read, as counts. */
export interface DataSummary {
  /** The file, or a name for the pairs. */
  readonly name: string;
  /** All rows that were read. */
  readonly rows: number;
  /** Pairs that were used. */
  readonly kept: number;
  /** Rows with an empty source or target. */
  readonly empty: number;
  /** Pairs that were too long. */
  readonly tooLong: number;
  /** Pairs whose text contains a special token. */
  readonly reserved: number;
  /** Kept pairs with characters that the tokenizer does not know. */
  readonly unknown: number;
  /** Rows that could not be read as a pair. */
  readonly malformed: number;
  /** All of it as one line. */
  readonly description: string;
}

/** The beginning or the continuation of a run. */
export interface StartRecord extends StartEvent {
  /** When, in ISO 8601. */
  readonly time: string;
  /** The settings that the log was given; null if none. */
  readonly settings: Readonly<Record<string, unknown>> | null;
  /** The data that the log was given. */
  readonly data: readonly DataSummary[];
  /** What it computes with. */
  readonly hardware: Hardware;
}

/** A message of a run. */
export interface MessageRecord {
  /** Steps taken before. */
  readonly step: number;
  /** A warning, or another text for the user. */
  readonly text: string;
}

/** The end of a run. */
export interface EndRecord extends Omit<EndEvent, 'error'> {
  /** The message of the error that ended the run; null if none did. */
  readonly error: string | null;
}

/** The records in `log.jsonl` by their `event`. */
export interface LogRecords {
  readonly start: StartRecord;
  readonly step: StepRecord;
  readonly validation: ValidationRecord;
  readonly epoch: EpochRecord;
  readonly checkpoint: CheckpointEvent;
  readonly message: MessageRecord;
  readonly end: EndRecord;
}

/** One line of `log.jsonl`. */
export type LogRecord = {
  [Name in keyof LogRecords]: { readonly event: Name } & LogRecords[Name];
}[keyof LogRecords];

/** The line of an event, with its line end. */
export function logLine<Name extends keyof LogRecords>(
  name: Name,
  record: LogRecords[Name],
): string {
  return `${JSON.stringify({ event: name, ...record }, finiteOrText)}\n`;
}

/** As {@link logLine}, of the fields that a step is recorded with, in a fifth of the time. */
export function stepLine(event: StepEvent): string {
  const { step, epoch, loss, tokens, learningRate, gradientNorm, seconds } = event;
  return (
    `{"event":"step","step":${step},"epoch":${epoch},"loss":${numberText(loss)},"tokens":${tokens},` +
    `"learningRate":${numberText(learningRate)},"gradientNorm":${numberText(gradientNorm)},` +
    `"seconds":${numberText(seconds)}}\n`
  );
}

/** JSON has no NaN and no Infinity: they become strings, as in `history.json`. */
function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

function finiteOrText(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

/** The text of an error in a record; null if there is none. */
export function messageOf(error: unknown): string | null {
  if (error === undefined) return null;
  return error instanceof Error ? error.message : inspect(error);
}

/** The counts of a report. @throws TypeError if it is none */
export function summaryOf(report: DataReport): DataSummary {
  const description = describeReport(report);
  const { name, rows, kept, empty, tooLong, reserved, unknown, malformed } = report;
  return {
    ...{ name, rows, kept, empty, tooLong, reserved, unknown },
    malformed: malformed.length,
    description,
  };
}

/** The numbers that a record must have; those of other events are only read if they are numbers. */
const numbersOf: Readonly<Record<keyof LogRecords, readonly string[]>> = {
  start: ['step', 'epoch', 'seconds'],
  step: ['step', 'epoch', 'loss', 'tokens', 'learningRate', 'gradientNorm', 'seconds'],
  validation: ['step', 'epoch', 'loss', 'perplexity', 'tokens', 'seconds'],
  epoch: ['step', 'epoch', 'trainLoss', 'trainTokens', 'trainSeconds'],
  checkpoint: ['step', 'epoch'],
  message: ['step'],
  end: ['step', 'epoch', 'seconds'],
};

/** Numbers that may be text, and that a record need not have. */
const optionalNumbers: Partial<Record<keyof LogRecords, readonly string[]>> = {
  start: ['epochs', 'steps', 'parameters'],
  validation: ['accuracy', 'bleu', 'chrf'],
  epoch: ['validationLoss'],
};

/**
 * Checks a parsed line, and turns the texts `"NaN"` and `"Infinity"` back into numbers.
 *
 * @returns the record; null if its event is one of a later version
 * @throws Error naming the field that is wrong
 */
export function checkRecord(value: unknown): LogRecord | null {
  const record = value as Record<string, unknown>;
  if (typeof value !== 'object' || value === null || typeof record['event'] !== 'string') {
    throw new Error('it is not an object with an "event"');
  }
  const name = record['event'] as keyof LogRecords;
  const names = Object.hasOwn(numbersOf, name) ? numbersOf[name] : undefined;
  if (names === undefined) return null;
  for (const field of names) {
    if (typeof record[field] !== 'number' && !restoreNumber(record, field)) {
      throw new Error(`"${field}" of the ${name} is not a number`);
    }
  }
  for (const field of optionalNumbers[name] ?? []) restoreNumber(record, field);
  if (name === 'validation' && !Array.isArray(record['samples'])) {
    throw new Error('"samples" of the validation is not an array');
  }
  return value as LogRecord;
}

function restoreNumber(record: Record<string, unknown>, field: string): boolean {
  const text = record[field];
  if (text !== 'NaN' && text !== 'Infinity' && text !== '-Infinity') return false;
  record[field] = Number(text);
  return true;
}

/** The error of a line that cannot be read. */
export function lineFault(path: string, line: number, error: unknown): TorchError {
  return new TorchError(
    'ERR_DATA',
    `${path}:${line}: this line cannot be read: ${(error as Error).message}; if it is damaged, remove it`,
    { cause: error },
  );
}
