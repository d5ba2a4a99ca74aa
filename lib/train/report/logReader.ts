/** Reads `log.jsonl` in pieces: that of a long run is larger than the longest string. */
import { open } from 'node:fs/promises';
import { checkRecord, lineFault, type LogRecord } from './logRecord.js';

const pieceSize = 4 * 1024 * 1024;
const lineEnd = 0x0a;

/** Some complete lines of the file. */
interface Lines {
  readonly bytes: Buffer;
  /** Where they begin in the file. */
  readonly offset: number;
  /** The number of the first line, from 1. */
  readonly line: number;
  /** Whether the line end is missing: the writer was killed. Only at the end of the file. */
  readonly torn: boolean;
}

async function* completeLines(path: string): AsyncGenerator<Lines> {
  const handle = await open(path, 'r');
  try {
    let rest: Buffer = Buffer.alloc(0);
    let offset = 0;
    let line = 1;
    for (;;) {
      const piece = Buffer.allocUnsafe(pieceSize);
      const { bytesRead } = await handle.read(piece, 0, pieceSize, offset + rest.length);
      if (bytesRead === 0) break;
      const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
      const end = bytes.lastIndexOf(lineEnd) + 1;
      rest = bytes.subarray(end);
      if (end === 0) continue;
      const lines = { bytes: bytes.subarray(0, end), offset, line, torn: false };
      yield lines;
      offset += end;
      line += countLines(lines.bytes);
    }
    if (rest.length > 0) yield { bytes: rest, offset, line, torn: true };
  } finally {
    await handle.close();
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineEnd); at >= 0; at = bytes.indexOf(lineEnd, at + 1)) count++;
  return count;
}

/** A record and where its line ends in the file. */
interface PlacedRecord {
  readonly record: LogRecord | null;
  readonly end: number;
}

/** Line by line, to know where each of them is. @throws TorchError ERR_DATA naming the line */
function* placedRecords(path: string, lines: Lines): Generator<PlacedRecord> {
  const { bytes, offset, line } = lines;
  let number = line;
  for (let start = 0; start < bytes.length; number++) {
    const found = bytes.indexOf(lineEnd, start);
    const end = found < 0 ? bytes.length : found + 1;
    const text = bytes.toString('utf8', start, end).trim();
    try {
      if (text !== '') yield { record: checkRecord(JSON.parse(text)), end: offset + end };
    } catch (error) {
      throw lineFault(path, number, error);
    }
    start = end;
  }
}

/** All at once, in a third of the time; null if a line is not as it should be. */
function parseTogether({ bytes }: Lines): LogRecord[] | null {
  const text = bytes.toString('utf8');
  try {
    const values = JSON.parse(`[${text.trimEnd().replaceAll('\n', ',')}]`) as unknown[];
    return values.flatMap((value) => checkRecord(value) ?? []);
  } catch {
    return null;
  }
}

/**
 * The records of a log, some thousand at a time. The last line may be torn, because the writer was
 * killed: it is left out.
 *
 * @throws TorchError ERR_DATA naming the line that cannot be read; the system's error if there is no
 *   file
 */
export async function* logRecords(path: string): AsyncGenerator<readonly LogRecord[]> {
  for await (const lines of completeLines(path)) {
    if (lines.torn) return;
    yield (
      parseTogether(lines) ??
      Array.from(placedRecords(path, lines), ({ record }) => record).filter(
        (record) => record !== null,
      )
    );
  }
}

/**
 * The bytes of a log up to the first record after `step`, or up to a torn line.
 *
 * @throws as {@link logRecords}
 */
export async function bytesUpToStep(path: string, step: number): Promise<number> {
  let end = 0;
  for await (const lines of completeLines(path)) {
    if (lines.torn) return end;
    const together = parseTogether(lines);
    if (together !== null && together.every((record) => record.step <= step)) {
      end = lines.offset + lines.bytes.length;
      continue;
    }
    for (const placed of placedRecords(path, lines)) {
      if (placed.record !== null && placed.record.step > step) return end;
      end = placed.end;
    }
  }
  return end;
}
