/** How a file is cut into cells, found from its first line where the options do not say it. */
import { RowReader, type RowFormat } from './rowReader.js';

/** What the options of reading say about the format. */
export interface WantedFormat {
  readonly src: string | number;
  readonly tgt: string | number;
  readonly format: 'auto' | 'csv' | 'tsv';
  readonly delimiter: string | undefined;
  readonly quoted: boolean | undefined;
  readonly header: boolean;
  readonly invalidUtf8: 'error' | 'replace';
  /** Whether malformed rows are left out. */
  readonly skip: boolean;
}

/** As much of the first line as is looked at. */
const sniffLimit = 64 * 1024;

/** Whether the first line is there as a whole, its line end included. */
export function hasFirstLine(bytes: Uint8Array): boolean {
  return bytes.length >= sniffLimit || endOfFirstLine(bytes) < bytes.length || bytes.at(-1) === 10;
}

/** The offset behind the line end of the first line; all bytes where there is none. */
function endOfFirstLine(bytes: Uint8Array): number {
  const returned = bytes.indexOf(13);
  const fed = bytes.indexOf(10);
  if (returned >= 0 && (fed < 0 || returned < fed)) {
    return bytes[returned + 1] === 10 ? returned + 2 : returned + 1;
  }
  return fed < 0 ? bytes.length : fed + 1;
}

/** The format, and where the rows begin: behind a line `sep=;`, which spreadsheets write. */
export interface FoundFormat {
  readonly format: RowFormat;
  readonly start: number;
}

/**
 * The format of a file. A delimiter that is not given is the one by which the first row has the
 * wanted columns; where none has them, tabs if the first line has one, else commas.
 *
 * @param head the first line at least, or all there is
 * @param skipped bytes before them
 */
export function findFormat(
  head: Uint8Array,
  wanted: WantedFormat,
  name: string,
  skipped: number,
): FoundFormat {
  const end = Math.min(endOfFirstLine(head), sniffLimit);
  const firstLine = head.subarray(0, end);
  const announced = announcedDelimiter(firstLine);
  const formatWith = (delimiter: string): RowFormat => ({
    name,
    delimiter,
    quoted:
      wanted.quoted ?? (wanted.format === 'auto' ? delimiter !== '\t' : wanted.format === 'csv'),
    header: wanted.header,
    invalidUtf8: wanted.invalidUtf8,
    refuseNul: !wanted.skip,
    skipped: announced === null ? skipped : skipped + end,
    skippedLines: announced === null ? 0 : 1,
  });
  const start = announced === null ? 0 : end;
  if (wanted.delimiter !== undefined) return { format: formatWith(wanted.delimiter), start };
  if (announced !== null) return { format: formatWith(announced), start };
  if (wanted.format !== 'auto') {
    return { format: formatWith(wanted.format === 'tsv' ? '\t' : ','), start };
  }
  const usual = firstLine.includes(9) ? ['\t', ','] : [',', '\t'];
  const found = [...usual, ';', '|'].find((delimiter) => {
    const cells = firstRow(firstLine, formatWith(delimiter));
    return hasColumns(cells, wanted);
  });
  return { format: formatWith(found ?? (usual[0] as string)), start };
}

/** `sep=;`, with or without quotes. */
function announcedDelimiter(firstLine: Uint8Array): string | null {
  if (firstLine.length > 16) return null;
  const text = Buffer.from(firstLine).toString('utf8');
  return /^"?sep=(.)"?\r?\n?$/i.exec(text)?.[1] ?? null;
}

function firstRow(line: Uint8Array, format: RowFormat): readonly string[] {
  const reader = new RowReader(format);
  const rows = reader.push(line).rows;
  return (rows[0] ?? reader.end().rows[0])?.cells ?? [];
}

function hasColumns(cells: readonly string[], { src, tgt }: WantedFormat): boolean {
  return [src, tgt].every((column) =>
    typeof column === 'number' ? column <= cells.length : cells.includes(column),
  );
}
