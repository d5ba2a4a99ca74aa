import { counted } from '../../runtime/counted.js';
import { TorchError } from '../../runtime/errors.js';
import {
  checkBoolean,
  checkRequiredOptions,
  checkSignal,
  describe,
} from '../../runtime/arguments.js';
import { findColumns, type Columns } from './columns.js';
import { checkSource, nameOfSource, openBytes, type ByteSource } from './byteSource.js';
import { newReport, type DataReport } from '../report.js';
import { isBlank, withoutMark } from '../text.js';
import { findFormat, hasFirstLine, type WantedFormat } from './rowFormat.js';
import { RowReader, type Row, type RowBatch } from './rowReader.js';

/** A sentence pair and its position in the file. */
export interface SentencePair {
  /** The source sentence, unchanged. */
  src: string;
  /** The target sentence, unchanged. */
  tgt: string;
  /** Row number in the file, from 1, counting blank lines but not a header. */
  row: number;
  /** Number of the line on which the row begins, from 1. */
  line: number;
}

/** Options of {@link readPairs}. */
export interface ReadPairsOptions {
  /** The column of the source sentences: its name, or its number from 1 with `header: false`. */
  src: string | number;
  /** The column of the target sentences: its name, or its number from 1 with `header: false`. */
  tgt: string | number;
  /**
   * `'csv'` (commas, RFC 4180) or `'tsv'` (tabs, no quoting). Default `'auto'`: the delimiter is a
   * comma, tab, semicolon or vertical bar, whichever gives the first row the requested columns; a
   * first line such as `sep=;` also sets it.
   */
  format?: 'auto' | 'csv' | 'tsv' | undefined;
  /** The character between cells, for example `':'`. Default: that of the format. */
  delimiter?: string | undefined;
  /** Whether cells may be in double quotes. Default: true for CSV, false for TSV. */
  quoted?: boolean | undefined;
  /** Whether the first row names the columns. Default true. */
  header?: boolean | undefined;
  /**
   * What to do with a row that has a wrong number of cells, contains a NUL or repeats the header:
   * `'error'` (default) throws an error that names it, `'skip'` skips it and lists it in the report.
   * Invalid quoting is always an error, because it is not known where the next row begins.
   */
  onMalformed?: 'error' | 'skip' | undefined;
  /** What to do with invalid UTF-8: `'error'` (default), or `'replace'` with U+FFFD. */
  invalidUtf8?: 'error' | 'replace' | undefined;
  /** Aborts between two chunks. */
  signal?: AbortSignal | undefined;
}

/** The names of all options of {@link readPairs}. */
export const readPairsOptionNames: readonly string[] = [
  'src',
  'tgt',
  'format',
  'delimiter',
  'quoted',
  'header',
  'onMalformed',
  'invalidUtf8',
  'signal',
];

/**
 * Reads sentence pairs from a CSV or TSV file, plain or gzip (detected by content), in UTF-8 with
 * or without a byte order mark. Rows whose source or target is empty, or has only white space and
 * zero-width characters, are skipped and counted.
 *
 * @throws TypeError for invalid options
 * @throws TorchError ERR_DATA, with the location: a missing or empty file, a missing or repeated
 * column (with the names found), a wrong number of cells, a quote that is not closed, a NUL,
 * invalid UTF-8, or no pair at all
 */
export async function readPairs(
  source: ByteSource,
  options: ReadPairsOptions,
): Promise<{ pairs: SentencePair[]; report: DataReport }> {
  return readPairsFor('readPairs', source, options);
}

/** @param owner the function that the user called, for messages */
export async function readPairsFor(
  owner: string,
  source: ByteSource,
  options: ReadPairsOptions,
): Promise<{ pairs: SentencePair[]; report: DataReport }> {
  checkSource(owner, source);
  const settings = checkReadOptions(owner, options);
  const name = nameOfSource(source);
  const report = newReport(name);
  const pairs: SentencePair[] = [];
  let columns: Columns | null = null;
  let header: readonly string[] | null = null;
  for await (const rows of readRows(source, settings, name)) {
    for (const row of rows) {
      if (columns === null) {
        columns = findColumns(row, settings, name);
        if (settings.header) {
          header = row.cells;
          continue;
        }
      }
      const pair = pairOf(row, columns, header, settings, report);
      if (pair !== null) pairs.push(pair);
    }
  }
  if (columns === null) throw new TorchError('ERR_DATA', `${name}: the file is empty`);
  if (report.rows === 0) {
    throw new TorchError('ERR_DATA', `${name}: the file has a header but no rows`);
  }
  if (pairs.length === 0) {
    throw new TorchError(
      'ERR_DATA',
      `${name}: no sentence pair in its ${counted(report.rows, 'row')} (empty: ${report.empty}, ` +
        `malformed: ${report.malformed.length})`,
    );
  }
  return { pairs, report };
}

interface Settings extends WantedFormat {
  readonly signal: AbortSignal | undefined;
}

function checkReadOptions(owner: string, options: ReadPairsOptions): Settings {
  checkRequiredOptions(owner, options, readPairsOptionNames, 'src and tgt');
  const {
    src,
    tgt,
    format = 'auto',
    delimiter,
    quoted,
    header = true,
    onMalformed = 'error',
    invalidUtf8 = 'error',
    signal,
  } = options;
  checkBoolean(owner, 'header', header);
  if (quoted !== undefined) checkBoolean(owner, 'quoted', quoted);
  checkSignal(owner, 'signal', signal);
  for (const [name, column] of [
    ['src', src],
    ['tgt', tgt],
  ] as const) {
    const numbered = Number.isSafeInteger(column) && (column as number) >= 1;
    if (header ? typeof column !== 'string' || column === '' : !numbered) {
      const expected = header
        ? 'the name of a column (columns by number need header: false)'
        : 'the number of a column, from 1, since header is false';
      throw new TypeError(`${owner}: ${name} must be ${expected}, got ${describe(column)}`);
    }
  }
  if (src === tgt) {
    throw new TypeError(`${owner}: src and tgt are the same column, ${describe(src)}`);
  }
  oneOf(owner, 'format', format, ['auto', 'csv', 'tsv']);
  oneOf(owner, 'onMalformed', onMalformed, ['error', 'skip']);
  oneOf(owner, 'invalidUtf8', invalidUtf8, ['error', 'replace']);
  const isDelimiter = (value: unknown) =>
    typeof value === 'string' && value.length === 1 && !'"\r\n'.includes(value);
  if (delimiter !== undefined && !isDelimiter(delimiter)) {
    throw new TypeError(
      `${owner}: delimiter must be one character other than a quote or line end, got ${describe(delimiter)}`,
    );
  }
  const skip = onMalformed === 'skip';
  return { src, tgt, format, delimiter, quoted, header, skip, invalidUtf8, signal };
}

function oneOf(owner: string, name: string, value: string, valid: readonly string[]): void {
  if (valid.includes(value)) return;
  const list = valid.map((item) => `"${item}"`).join(' or ');
  throw new TypeError(`${owner}: ${name} must be ${list}, got ${describe(value)}`);
}

/** Yields the rows in groups, one for each chunk. */
async function* readRows(
  source: ByteSource,
  settings: Settings,
  name: string,
): AsyncGenerator<Row[]> {
  const { skipped, chunks } = await openBytes(source);
  let head: Uint8Array = new Uint8Array(0);
  let reader: RowReader | null = null;
  const start = (first: Uint8Array): Generator<Row[]> => {
    const found = findFormat(first, settings, name, skipped);
    reader = new RowReader(found.format);
    return fault(reader.push(first.subarray(found.start)));
  };
  for await (const chunk of chunks) {
    settings.signal?.throwIfAborted();
    if (reader !== null) {
      yield* fault((reader as RowReader).push(chunk));
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (hasFirstLine(head)) yield* start(head);
  }
  if (reader === null && head.length > 0) yield* start(head);
  if (reader !== null) yield* fault((reader as RowReader).end());
}

/** Yields the rows before it throws, so that the result does not depend on chunk sizes. */
function* fault(batch: RowBatch): Generator<Row[]> {
  yield batch.rows;
  if (batch.error !== null) throw batch.error;
}

function pairOf(
  { cells, row, line }: Row,
  columns: Columns,
  header: readonly string[] | null,
  settings: Settings,
  report: DataReport,
): SentencePair | null {
  report.rows++;
  // From a file that was appended to another one.
  cells[0] = withoutMark(cells[0] ?? '');
  // A blank line is not a row of one cell.
  if (cells.length === 1 && isBlank(cells[0]) && columns.count > 1) {
    report.empty++;
    report.emptyRows.push(row);
    return null;
  }
  const reason = faultOf(cells, columns, header);
  if (reason !== null) {
    if (!settings.skip) {
      throw new TorchError(
        'ERR_DATA',
        `${report.name}: row ${row} (line ${line}) has ${reason}; ` +
          `with onMalformed: "skip" such rows are left out and listed`,
      );
    }
    report.malformed.push({ row, line, reason });
    return null;
  }
  const src = cells[columns.src] as string;
  const tgt = cells[columns.tgt] as string;
  if (isBlank(src) || isBlank(tgt)) {
    report.empty++;
    report.emptyRows.push(row);
    return null;
  }
  report.kept++;
  return { src, tgt, row, line };
}

/** What is wrong with a row, as the object of "has"; null if nothing is. */
function faultOf(
  cells: readonly string[],
  columns: Columns,
  header: readonly string[] | null,
): string | null {
  if (cells.length !== columns.count) {
    return `${counted(cells.length, 'cell')} instead of ${columns.count}`;
  }
  if (cells.some((cell) => cell.includes('\0'))) return 'a NUL byte';
  return header !== null && cells.every((cell, index) => cell === header[index])
    ? 'the header again, as in concatenated files'
    : null;
}
