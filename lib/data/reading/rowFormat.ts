/** Finds how a file is split into cells, from its first line if the options do not specify it. */
import { RowReader, type RowFormat } from './rowReader.js';

/** The options of reading that concern the format. */
export interface WantedFormat {
  readonly src: string | number;
  readonly tgt: string | number;
  readonly format: 'auto' | 'csv' | 'tsv';
  readonly delimiter: string | undefined;
  readonly quoted: boolean | undefined;
  readonly header: boolean;
  readonly invalidUtf8: 'error' | 'replace';
  /** Whether malformed rows are skipped. */
  readonly skip: boolean;
}

/** Maximum number of bytes of the first line to examine. */
const sniffLimit = 64 * 1024;

/** Whether the first line is complete, including its line end. */
export function hasFirstLine(bytes: Uint8Array): boolean {
  return bytes.length >= sniffLimit || endOfFirstLine(bytes) < bytes.length || bytes.at(-1) === 10;
}

/** The offset after the line end of the first line, or the length if there is none. */
function endOfFirstLine(bytes: Uint8Array): number {
  const returned = bytes.indexOf(13);
  const fed = bytes.indexOf(10);
  if (returned >= 0 && (fed < 0 || returned < fed)) {
    return bytes[returned + 1] === 10 ? returned + 2 : returned + 1;
  }
  return fed < 0 ? bytes.length : fed + 1;
}

/** The format, and where the rows begin: after a line such as `sep=;`, as spreadsheets write it. */
export interface FoundFormat {
  readonly format: RowFormat;
  readonly start: number;
}

/**
 * Finds the format of a file. The default delimiter is the one with which the first row has the
 * requested columns; if none does, tabs if the first line has one, else commas.
 *
 * @param head at least the first line, or all bytes if there are fewer
 * @param skipped number of bytes before `head`
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
