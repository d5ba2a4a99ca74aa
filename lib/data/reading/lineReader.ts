import { TorchError } from '../../runtime/errors.js';
import { openBytes, type ByteSource } from './byteSource.js';
import { maxTextLength, withoutMark } from '../text.js';
import { Utf8Checker } from './utf8.js';

/** One line of a text. */
export interface TextLine {
  /** Counts from 1. */
  readonly number: number;
  /** Without its line end; null for a line of more than {@link maxTextLength} characters. */
  readonly text: string | null;
}

/**
 * Reads the lines of a text, in groups as they arrive, with the same rules as files of pairs: plain
 * or gzip, UTF-8 with or without a byte order mark, lines that end with LF, CRLF or a lone CR.
 *
 * @param name the name of the source in messages
 * @throws TorchError ERR_DATA if it is not UTF-8 text, with the line and the byte offset, after
 * yielding the lines before it
 */
export async function* readLines(source: ByteSource, name: string): AsyncGenerator<TextLine[]> {
  const { skipped, chunks } = await openBytes(source, name);
  const lines = new LineSplitter();
  const utf8 = new Utf8Checker();
  let length = 0;
  const fault = (offset: number, reason: string) =>
    new TorchError(
      'ERR_DATA',
      `${name}: line ${lines.number}: ${reason} (byte offset ${offset + skipped})`,
    );
  for await (const chunk of chunks) {
    const invalid = utf8.push(chunk);
    const nul = chunk.indexOf(0);
    const isNul = nul >= 0 && (invalid < 0 || length + nul < invalid);
    const offset = isNul ? length + nul : invalid;
    if (offset >= 0) {
      yield lines.push(chunk.subarray(0, Math.max(0, offset - length)));
      throw fault(
        offset,
        isNul ? 'a NUL byte, which is not valid in text' : 'this is not valid UTF-8',
      );
    }
    length += chunk.length;
    yield lines.push(chunk);
  }
  const cut = utf8.end();
  if (cut >= 0) throw fault(cut, 'the text ends within a UTF-8 character');
  yield lines.end();
}

/** Maximum number of bytes in a line within the limit: at most three for each UTF-16 unit. */
const mostBytes = 3 * maxTextLength;

/** Splits chunks of any size into lines. The text of a line that is too long is not kept. */
class LineSplitter {
  /** Number of the current line. */
  number = 1;
  #parts: Uint8Array[] = [];
  #length = 0;
  #afterReturn = false;

  push(chunk: Uint8Array): TextLine[] {
    const lines: TextLine[] = [];
    let start = 0;
    // The LF of a CRLF that was split between two chunks.
    if (this.#afterReturn && chunk[0] === 10) start = 1;
    if (chunk.length > 0) this.#afterReturn = false;
    for (;;) {
      const end = nextLineEnd(chunk, start);
      if (end < 0) break;
      this.#add(chunk.subarray(start, end));
      lines.push(this.#close());
      start = end + 1;
      if (chunk[end] !== 13) continue;
      if (start === chunk.length) this.#afterReturn = true;
      else if (chunk[start] === 10) start++;
    }
    this.#add(chunk.subarray(start));
    return lines;
  }

  /** Returns the last line if it has no line end. */
  end(): TextLine[] {
    return this.#length > 0 ? [this.#close()] : [];
  }

  #add(part: Uint8Array): void {
    if (part.length === 0) return;
    this.#length += part.length;
    // A copy, because the source may reuse the memory of its chunk.
    if (this.#length <= mostBytes) this.#parts.push(part.slice());
    else this.#parts = [];
  }

  #close(): TextLine {
    const text =
      this.#length > mostBytes ? null : withoutMark(Buffer.concat(this.#parts).toString('utf8'));
    this.#parts = [];
    this.#length = 0;
    return {
      number: this.number++,
      text: (text?.length ?? Infinity) > maxTextLength ? null : text,
    };
  }
}

function nextLineEnd(bytes: Uint8Array, from: number): number {
  const fed = bytes.indexOf(10, from);
  const returned = (fed < 0 ? bytes : bytes.subarray(0, fed)).indexOf(13, from);
  return returned < 0 ? fed : returned;
}
