import { counted } from '../../runtime/counted.js';
import { TorchError } from '../../runtime/errors.js';
import {
  checkBoolean,
  checkRequiredOptions,
  checkSignal,
  describe,
} from '../../runtime/options.js';
import { findColumns, type Columns } from './columns.js';
import { checkSource, nameOfSource, openBytes, type ByteSource } from './byteSource.js';
import { newReport, type DataReport } from '../report.js';
import { RowReader, type Row, type RowBatch, type RowFormat } from './rowReader.js';

/** One sentence pair and where it came from. */
export interface SentencePair {
  /** The source sentence, as the cell has it. */
  src: string;
  /** The target sentence, as the cell has it. */
  tgt: string;
  /** Number of the row in the file, from 1; a header does not count, blank lines do. */
  row: number;
  /** Number of the line that the row begins on, from 1. */
  line: number;
}

/** Options of {@link readPairs}. */
export interface ReadPairsOptions {
  /** The column of the source sentences: its name, or its number from 1 with `header: false`. */
  src: string | number;
  /** The column of the target sentences: its name, or its number from 1 with `header: false`. */
  tgt: string | number;
  /**
   * `'csv'` (commas, RFC 4180) or `'tsv'` (tabs, no quoting). Default `'auto'`: TSV when the first
   * line has a tab.
   */
  format?: 'auto' | 'csv' | 'tsv' | undefined;
  /** One character between cells, for example `';'`. Default: as the format says. */
  delimiter?: string | undefined;
  /** Whether cells may stand in double quotes. Default: true for CSV, false for TSV. */
  quoted?: boolean | undefined;
  /** Whether the first row names the columns. Default true. */
  header?: boolean | undefined;
  /**
   * What a row with a wrong number of cells or a NUL does: `'error'` (default) names it and stops,
   * `'skip'` leaves it out and lists it in the report. Faults in the quotes are always errors,
   * since behind one nobody knows where the next row begins.
   */
  onMalformed?: 'error' | 'skip' | undefined;
  /** Bytes that are no UTF-8: `'error'` (default), or `'replace'` with U+FFFD. */
  invalidUtf8?: 'error' | 'replace' | undefined;
  /** Stops the reading between two chunks. */
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
 * Reads sentence pairs from a CSV or TSV file, plain or gzip (known by its content), in UTF-8 with
 * or without a byte order mark. Rows whose source or target is empty or only white space are left
 * out and counted.
 *
 * @throws TypeError for a fault in the options
 * @throws TorchError ERR_DATA, naming the place: a missing or empty file, a missing or repeated
 * column (with the names found), a wrong number of cells, a quote that is not closed, a NUL,
 * invalid UTF-8, or no pair at all
 */
export async function readPairs(
  source: ByteSource,
  options: ReadPairsOptions,
): Promise<{ pairs: SentencePair[]; report: DataReport }> {
  return readPairsFor('readPairs', source, options);
}

/** @param owner what the user called, for messages */
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
  for await (const rows of readRows(source, settings, name)) {
    for (const row of rows) {
      if (columns === null) {
        columns = findColumns(row, settings, name);
        if (settings.header) continue;
      }
      const pair = pairOf(row, columns, settings, report);
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

interface Settings {
  src: string | number;
  tgt: string | number;
  format: 'auto' | 'csv' | 'tsv';
  delimiter: string | undefined;
  quoted: boolean | undefined;
  header: boolean;
  skip: boolean;
  invalidUtf8: 'error' | 'replace';
  signal: AbortSignal | undefined;
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
      `${owner}: delimiter must be one character and no quote or line end, got ${describe(delimiter)}`,
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

/** The rows in groups, as the chunks bring them. */
async function* readRows(
  source: ByteSource,
  settings: Settings,
  name: string,
): AsyncGenerator<Row[]> {
  const { skipped, chunks } = await openBytes(source);
  let head: Uint8Array | null = new Uint8Array(0);
  let reader: RowReader | null = null;
  const start = (firstBytes: Uint8Array): RowReader =>
    new RowReader(formatOf(firstBytes, settings, name, skipped));
  for await (const chunk of chunks) {
    settings.signal?.throwIfAborted();
    let bytes = chunk;
    if (head !== null) {
      bytes = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      head = bytes;
      if (!hasFirstLine(bytes)) continue;
    }
    head = null;
    reader ??= start(bytes);
    yield* fault(reader.push(bytes));
  }
  if (reader === null && head !== null && head.length > 0) {
    reader = start(head);
    yield* fault(reader.push(head));
  }
  if (reader !== null) yield* fault(reader.end());
}

/** Hands the rows on before the fault behind them, so that chunk sizes never change the outcome. */
function* fault(batch: RowBatch): Generator<Row[]> {
  yield batch.rows;
  if (batch.error !== null) throw batch.error;
}

/** As much of the first line as is looked at to tell TSV from CSV. */
const sniffLimit = 64 * 1024;

function hasFirstLine(bytes: Uint8Array): boolean {
  return bytes.length >= sniffLimit || bytes.includes(10) || bytes.includes(13);
}

function formatOf(bytes: Uint8Array, settings: Settings, name: string, skipped: number): RowFormat {
  let { format } = settings;
  if (format === 'auto') {
    const ends = [bytes.indexOf(10), bytes.indexOf(13), sniffLimit].filter((end) => end >= 0);
    const firstLine = bytes.subarray(0, Math.min(...ends));
    format = firstLine.includes(9) ? 'tsv' : 'csv';
  }
  return {
    name,
    delimiter: settings.delimiter ?? (format === 'tsv' ? '\t' : ','),
    quoted: settings.quoted ?? format === 'csv',
    header: settings.header,
    invalidUtf8: settings.invalidUtf8,
    refuseNul: !settings.skip,
    skipped,
  };
}

function pairOf(
  { cells, row, line }: Row,
  columns: Columns,
  settings: Settings,
  report: DataReport,
): SentencePair | null {
  report.rows++;
  // A blank line is no row of one cell.
  if (cells.length === 1 && cells[0] === '' && columns.count > 1) {
    report.empty++;
    report.emptyRows.push(row);
    return null;
  }
  const reason =
    cells.length !== columns.count
      ? `${cells.length} ${cells.length === 1 ? 'cell' : 'cells'} instead of ${columns.count}`
      : cells.some((cell) => cell.includes('\0'))
        ? 'a NUL byte'
        : null;
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
  if (src.trim() === '' || tgt.trim() === '') {
    report.empty++;
    report.emptyRows.push(row);
    return null;
  }
  report.kept++;
  return { src, tgt, row, line };
}
