import { counted } from '../runtime/counted.js';
import { checkArray, checkInteger, checkObject, checkString } from '../runtime/arguments.js';

/** A row that could not be read as a pair. */
export interface MalformedRow {
  /** Row number, from 1, not counting the header. */
  row: number;
  /** Number of the line on which the row begins, from 1. */
  line: number;
  /** A description of what is wrong with it. */
  reason: string;
}

/**
 * What happened to each row: `rows = kept + empty + tooLong + reserved + malformed.length`, so that
 * no pair is lost silently.
 */
export interface DataReport {
  /** The file, or a name for the pairs. */
  name: string;
  /** All rows that were read, including blank lines but not a header. */
  rows: number;
  /** Pairs that can be used for training. */
  kept: number;
  /** Rows with an empty source or target, and blank lines. */
  empty: number;
  /** Pairs with more tokens than the maximum length, or a text of more than 100,000 characters. */
  tooLong: number;
  /** Pairs whose text contains the pad, bos or eos token. */
  reserved: number;
  /**
   * Kept pairs with characters that the tokenizer does not know: it drops them, or maps all of them
   * to one token.
   */
  unknown: number;
  /** Rows with a wrong number of cells, a NUL and so on (with `onMalformed: 'skip'`). */
  malformed: MalformedRow[];
  /** The numbers of the rows counted in `empty`. */
  emptyRows: number[];
  /** The numbers of the rows counted in `tooLong`. */
  tooLongRows: number[];
  /** The numbers of the rows counted in `reserved`. */
  reservedRows: number[];
  /** The numbers of the rows counted in `unknown`. */
  unknownRows: number[];
}

/** Returns an empty report. */
export function newReport(name: string): DataReport {
  checkString('newReport', 'name', name);
  return {
    name,
    rows: 0,
    kept: 0,
    empty: 0,
    tooLong: 0,
    reserved: 0,
    unknown: 0,
    malformed: [],
    emptyRows: [],
    tooLongRows: [],
    reservedRows: [],
    unknownRows: [],
  };
}

/** @throws TypeError naming the field that is missing */
export function checkReport(owner: string, value: unknown): asserts value is DataReport {
  const report = checkObject(owner, 'report', value, 'a DataReport, as returned by readPairs');
  checkString(owner, 'report.name', report['name']);
  for (const name of ['rows', 'kept', 'empty', 'tooLong', 'reserved', 'unknown']) {
    checkInteger(owner, `report.${name}`, report[name], 0);
  }
  for (const name of ['malformed', 'emptyRows', 'tooLongRows', 'reservedRows', 'unknownRows']) {
    checkArray(owner, `report.${name}`, report[name], 'an array');
  }
}

/** Formats the report as one line: `train.csv: 20052 pairs kept of 20055 rows; empty: 3 (…)`. */
export function describeReport(report: DataReport): string {
  checkReport('describeReport', report);
  const parts = [
    count('empty', report.empty, report.emptyRows),
    count('too long', report.tooLong, report.tooLongRows),
    count('with a special token in the text', report.reserved, report.reservedRows),
    count(
      'malformed',
      report.malformed.length,
      report.malformed.map(({ row }) => row),
    ),
  ].filter((part) => part !== '');
  const left = parts.length === 0 ? '' : `; left out: ${parts.join(', ')}`;
  const unknown = count(
    'with characters that the tokenizer does not know',
    report.unknown,
    report.unknownRows,
  );
  const kept = `${report.name}: ${counted(report.kept, 'pair')} kept of ${counted(report.rows, 'row')}`;
  return `${kept}${left}${unknown === '' ? '' : `; kept: ${unknown}`}`;
}

const listed = 5;

function count(name: string, number: number, rows: readonly number[]): string {
  if (number === 0) return '';
  const list = rows.slice(0, listed).join(', ');
  return `${number} ${name} (${rows.length === 1 ? 'row' : 'rows'} ${list}${rows.length > listed ? ', …' : ''})`;
}
