import { Parser } from 'csv-parse';
import { TorchError } from '../../runtime/errors.js';
import { LineCounter } from './lineCounter.js';
import { Utf8Checker } from './utf8.js';

/** One row of a CSV or TSV file. */
export interface Row {
  cells: string[];
  /** Number of the row, from 1; the header is row 0. Blank lines count. */
  row: number;
  /** Number of the line that the row begins on, from 1. */
  line: number;
}

/** How the text is cut into rows and cells. */
export interface RowFormat {
  /** What the source is called in messages. */
  name: string;
  /** One character between cells. */
  delimiter: string;
  /** Whether cells may stand in double quotes as in RFC 4180. */
  quoted: boolean;
  /** Whether the first row is a header: row numbers begin after it. */
  header: boolean;
  /** What to do with bytes that are no UTF-8: an error, or U+FFFD in their place. */
  invalidUtf8: 'error' | 'replace';
  /** Whether a NUL byte is an error at once. Otherwise it stays in its cell. */
  refuseNul: boolean;
  /** Bytes before the first one pushed, for the offsets in messages. */
  skipped: number;
  /** Lines before the first one pushed. */
  skippedLines: number;
}

/** What one chunk brought: complete rows, then perhaps the fault that ends the reading. */
export interface RowBatch {
  rows: Row[];
  error: TorchError | null;
}

/**
 * The most characters in one row. Without a limit, a quote that is never closed would gather the
 * rest of a file of any size in memory.
 */
const maxRowLength = 16 * 1024 * 1024;

/**
 * Cuts chunks of any size into rows. csv-parse does the parsing; this class drives it chunk by
 * chunk and knows for every row and every fault where in the file it is.
 */
export class RowReader {
  private readonly parser: Parser;
  private readonly lines = new LineCounter();
  private readonly utf8 = new Utf8Checker();
  private rows: Row[] = [];
  /** Where each of `rows` ends: the offset after its line end. */
  private ends: number[] = [];
  private nextRow: number;
  /** Offset of the end of the last complete row, which is where the next begins. */
  private rowStart = 0;
  private length = 0;

  constructor(private readonly format: RowFormat) {
    this.nextRow = format.header ? 0 : 1;
    this.parser = new Parser({
      columns: false,
      delimiter: format.delimiter,
      quote: format.quoted ? '"' : null,
      escape: format.quoted ? '"' : null,
      // Explicit, since the line end of the first row says nothing about the others.
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      max_record_size: maxRowLength,
      on_record: (cells: string[], { bytes }) => {
        this.rows.push({ cells, row: this.nextRow++, line: this.lineAt(this.rowStart) });
        this.ends.push(bytes);
        this.rowStart = bytes;
        return null;
      },
    });
    // Errors are read from `errored` after each write; the event needs a listener all the same.
    this.parser.on('error', () => {});
  }

  /** Takes the next chunk. */
  push(chunk: Uint8Array): RowBatch {
    this.lines.push(chunk);
    const bad = this.findBadByte(chunk);
    if (bad !== null) {
      const before = chunk.subarray(0, Math.max(0, bad.offset - this.length));
      return this.stopAt(bad.offset, before, bad.reason);
    }
    this.write(chunk);
    return this.take();
  }

  /** Says that the source has ended; gives the last row, which may lack its line end. */
  end(): RowBatch {
    const offset = this.format.invalidUtf8 === 'error' ? this.utf8.end() : -1;
    if (offset >= 0) {
      return this.stopAt(offset, new Uint8Array(0), 'the file ends within a character of UTF-8');
    }
    this.parser.end();
    return this.take();
  }

  private write(chunk: Uint8Array): void {
    this.length += chunk.length;
    if (!this.parser.errored) this.parser.write(chunk);
  }

  private take(): RowBatch {
    const rows = this.rows;
    this.rows = [];
    this.ends = [];
    const { errored } = this.parser;
    return { rows, error: errored ? this.parserError(errored) : null };
  }

  private findBadByte(chunk: Uint8Array): { offset: number; reason: string } | null {
    const nul = this.format.refuseNul ? chunk.indexOf(0) : -1;
    const invalid = this.format.invalidUtf8 === 'error' ? this.utf8.push(chunk) : -1;
    const nulOffset = this.length + nul;
    if (nul >= 0 && (invalid < 0 || nulOffset < invalid)) {
      return { offset: nulOffset, reason: 'a NUL byte, which no text contains' };
    }
    return invalid < 0 ? null : { offset: invalid, reason: 'this is not valid UTF-8' };
  }

  /** Gives the rows that end before a bad byte, and the error that names the row it is in. */
  private stopAt(offset: number, before: Uint8Array, reason: string): RowBatch {
    this.write(before);
    if (this.parser.errored) return this.take();
    // One ordinary character in place of the bad byte keeps its row open: the rows that end up to
    // here are exactly those before it. What else the parser says about that row is of no use.
    this.parser.write(Buffer.from('x'));
    if (!this.parser.errored) this.parser.end();
    const complete = this.ends.filter((end) => end <= offset).length;
    const row = this.nextRow - (this.rows.length - complete);
    const place = this.place(row, this.lineAt(offset));
    const at = offset + this.format.skipped;
    const way =
      this.format.invalidUtf8 === 'error' && reason.includes('UTF-8')
        ? '; save the file as UTF-8, or read it with invalidUtf8: "replace"'
        : '';
    return {
      rows: this.rows.slice(0, complete),
      error: new TorchError('ERR_DATA', `${place}: ${reason} (byte offset ${at})${way}`),
    };
  }

  private lineAt(offset: number): number {
    return this.format.skippedLines + this.lines.lineAt(offset);
  }

  private place(row: number, line: number): string {
    const named = row === 0 ? 'the header' : `row ${row}`;
    return `${this.format.name}: ${named} (line ${line})`;
  }

  private parserError(error: Error): TorchError {
    const { code, column } = error as Error & { code?: string; column?: number | string };
    const place = this.place(this.nextRow, this.lineAt(this.rowStart));
    const cell = typeof column === 'number' ? `cell ${column + 1}` : 'a cell';
    const reason = explanations[code ?? '']?.(cell) ?? error.message;
    return new TorchError('ERR_DATA', `${place}: ${reason}`, { cause: error });
  }
}

const doubled =
  'within a quoted cell a quote is written twice (""); ' +
  'a file that uses no quoting is read with quoted: false';

/**
 * Faults in the quotes are never skipped: behind one, nobody knows where the next row begins. Each
 * is reported at the row where the cell began.
 */
const explanations: Record<string, (cell: string) => string> = {
  CSV_QUOTE_NOT_CLOSED: (cell) =>
    `the quote that opens ${cell} is never closed, to the end of the file`,
  CSV_INVALID_CLOSING_QUOTE: (cell) =>
    `the quote that opens ${cell} is never closed, or text follows the closing one; ${doubled}`,
  INVALID_OPENING_QUOTE: (cell) =>
    `${cell} has a quote within it but does not begin with one; ${doubled}`,
  CSV_MAX_RECORD_SIZE: () =>
    `the row has more than ${maxRowLength} characters; was a quote never closed?`,
};
