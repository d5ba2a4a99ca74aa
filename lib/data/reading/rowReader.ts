import { Parser } from 'csv-parse';
import { TorchError } from '../../runtime/errors.js';
import { LineCounter } from './lineCounter.js';
import { Utf8Checker } from './utf8.js';

/** One row of a CSV or TSV file. */
export interface Row {
  cells: string[];
  /** Row number, from 1, counting blank lines; the header is row 0. */
  row: number;
  /** Number of the line on which the row begins, from 1. */
  line: number;
}

/** How the text is split into rows and cells. */
export interface RowFormat {
  /** The name of the source in messages. */
  name: string;
  /** The character between cells. */
  delimiter: string;
  /** Whether cells may be in double quotes as in RFC 4180. */
  quoted: boolean;
  /** Whether the first row is a header; row numbers begin after it. */
  header: boolean;
  /** What to do with invalid UTF-8: throw an error, or replace it with U+FFFD. */
  invalidUtf8: 'error' | 'replace';
  /** Whether a NUL byte is an error immediately. Otherwise it stays in its cell. */
  refuseNul: boolean;
  /** Number of bytes before the first chunk, for the offsets in messages. */
  skipped: number;
  /** Number of lines before the first chunk. */
  skippedLines: number;
}

/** The result of one chunk: complete rows, then the error that ends the reading, if any. */
export interface RowBatch {
  rows: Row[];
  error: TorchError | null;
}

/**
 * Maximum number of characters in a row. Without a limit, an unclosed quote would collect the rest
 * of the file in memory.
 */
const maxRowLength = 16 * 1024 * 1024;

/**
 * Splits chunks of any size into rows. csv-parse does the parsing; this class calls it chunk by
 * chunk and tracks the location of each row and each error in the file.
 */
export class RowReader {
  private readonly parser: Parser;
  private readonly lines = new LineCounter();
  private readonly utf8 = new Utf8Checker();
  private rows: Row[] = [];
  /** Where each of `rows` ends: the offset after its line end. */
  private ends: number[] = [];
  private nextRow: number;
  /** Offset of the end of the last complete row, where the next begins. */
  private rowStart = 0;
  private length = 0;

  constructor(private readonly format: RowFormat) {
    this.nextRow = format.header ? 0 : 1;
    this.parser = new Parser({
      columns: false,
      delimiter: format.delimiter,
      quote: format.quoted ? '"' : null,
      escape: format.quoted ? '"' : null,
      // Explicit, because line ends may differ between rows.
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
    // Errors are read from `errored` after each write, but the event still needs a listener.
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

  /** Ends the input; returns the last row, which may have no line end. */
  end(): RowBatch {
    const offset = this.format.invalidUtf8 === 'error' ? this.utf8.end() : -1;
    if (offset >= 0) {
      return this.stopAt(offset, new Uint8Array(0), 'the file ends within a UTF-8 character');
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
      return { offset: nulOffset, reason: 'a NUL byte, which is not valid in text' };
    }
    return invalid < 0 ? null : { offset: invalid, reason: 'this is not valid UTF-8' };
  }

  /** Returns the rows that end before an invalid byte, and the error with the row of the byte. */
  private stopAt(offset: number, before: Uint8Array, reason: string): RowBatch {
    this.write(before);
    if (this.parser.errored) return this.take();
    // An ordinary character in place of the invalid byte keeps its row open, so exactly the rows
    // before it are complete. Any further output of the parser is ignored.
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
  'within a quoted cell, write a quote twice (""); ' +
  'a file without quoting is read with quoted: false';

/**
 * Invalid quoting is never skipped, because it is not known where the next row begins. It is
 * reported at the row where the cell began.
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
