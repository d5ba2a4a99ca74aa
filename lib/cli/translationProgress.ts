/** Progress of the translation of a file. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { isGzip } from '../data/reading/fileSignature.js';
import { counted } from '../runtime/counted.js';
import { clockTime, ProgressLine, type ProgressStream } from '../train/run/progressLine.js';

/**
 * The size of a file in bytes; null if it does not tell how much text is in it: of pipes, terminals and
 * compressed files.
 *
 * @param file path or descriptor
 */
export function sizeOfText(file: string | number): number | null {
  let descriptor: number | null = null;
  try {
    descriptor = typeof file === 'string' ? openSync(file, 'r') : file;
    const status = fstatSync(descriptor);
    if (!status.isFile()) return null;
    const head = new Uint8Array(3);
    // From the position 0, so that a descriptor does not move.
    readSync(descriptor, head, 0, 3, 0);
    return isGzip(head) ? null : status.size;
  } catch {
    return null;
  } finally {
    if (typeof file === 'string' && descriptor !== null) closeSync(descriptor);
  }
}

/** One line on a terminal, nothing elsewhere. */
export class TranslationProgress {
  readonly #line: ProgressLine | null;
  readonly #total: number | null;
  readonly #now: () => number;
  readonly #start: number;
  #lines = 0;
  #bytes = 0;

  /**
   * @param total bytes of the input; null if unknown
   * @param now clock in milliseconds
   */
  constructor(
    total: number | null,
    stream: ProgressStream = process.stderr,
    now: () => number = () => performance.now(),
  ) {
    this.#line = stream.isTTY === true ? new ProgressLine(stream, now) : null;
    this.#total = total;
    this.#now = now;
    this.#start = now();
  }

  add(lines: readonly { readonly text: string | null }[]): void {
    this.#lines += lines.length;
    for (const { text } of lines) this.#bytes += Buffer.byteLength(text ?? '') + 1;
    this.#line?.update(() => this.#text());
  }

  finish(): void {
    this.#line?.clear();
  }

  #text(): string {
    const lines = counted(this.#lines, 'line');
    if (this.#total === null || this.#total === 0) return lines;
    const done = Math.min(1, this.#bytes / this.#total);
    const seconds = (this.#now() - this.#start) / 1000;
    const left = clockTime((seconds / done) * (1 - done));
    return `${lines} (${Math.floor(100 * done)} %)  ${left} left`;
  }
}
