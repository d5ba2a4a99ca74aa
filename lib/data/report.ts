import { counted } from '../runtime/counted.js';
import { checkArray, checkInteger, checkObject, checkString } from '../runtime/arguments.js';

/** A row that could not be read as a pair. */
export interface MalformedRow {
  /** Number of the row, from 1; the header does not count. */
  row: number;
  /** Number of the line that the row begins on, from 1. */
  line: number;
  /** What is wrong with it, for people. */
  reason: string;
}

/**
 * What became of every row: `rows = kept + empty + tooLong + reserved + malformed.length`, so that
 * no pair is lost in silence.
 */
export interface DataReport {
  /** The file, or what the pairs are called. */
  name: string;
  /** All rows that were read, blank lines included, a header not. */
  rows: number;
  /** Pairs that can be trained on. */
  kept: number;
  /** Rows with an empty source or target, and blank lines. */
  empty: number;
  /** Pairs with more tokens than the maximum length, or a text of more than 100,000 characters. */
  tooLong: number;
  /** Pairs whose text has the pad, bos or eos token written out. */
  reserved: number;
  /**
   * Pairs among those kept with characters that the tokenizer does not know: it drops them, or has
   * one token for all of them.
   */
  unknown: number;
  /** Rows with a wrong number of cells, a NUL or the like (with `onMalformed: 'skip'`). */
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

/** A report of nothing yet. */
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
  const report = checkObject(owner, 'report', value, 'a DataReport such as readPairs gives');
  checkString(owner, 'report.name', report['name']);
  for (const name of ['rows', 'kept', 'empty', 'tooLong', 'reserved', 'unknown']) {
    checkInteger(owner, `report.${name}`, report[name], 0);
  }
  for (const name of ['malformed', 'emptyRows', 'tooLongRows', 'reservedRows', 'unknownRows']) {
    checkArray(owner, `report.${name}`, report[name], 'an array');
  }
}

/** The report in one line for people: `train.csv: 20052 pairs kept of 20055 rows; empty: 3 (…)`. */
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
