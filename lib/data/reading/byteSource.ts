import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGunzip } from 'node:zlib';
import { TorchError } from '../../runtime/errors.js';
import { describe, isIterable } from '../../runtime/arguments.js';
import { foreignFileOf, isGzip, lengthOfMark, needsMoreBytes } from './fileSignature.js';

/** A file (path or `file:` URL), or the bytes themselves in chunks of any size. */
export type ByteSource = string | URL | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** @throws TypeError if `source` is not a ByteSource, with the fix for common mistakes */
export function checkSource(owner: string, source: unknown): void {
  const expected = `${owner}: the source must be a path, a file: URL or an iterable of Uint8Array`;
  if (typeof source === 'string' && source !== '') return;
  if (source instanceof URL) {
    if (source.protocol === 'file:') return;
    throw new TypeError(`${expected}, got the URL ${source.href}; download it first`);
  }
  if (source instanceof Uint8Array) {
    throw new TypeError(`${expected}, got ${describe(source)}; to read these bytes, pass [bytes]`);
  }
  if (!isIterable(source)) throw new TypeError(`${expected}, got ${describe(source)}`);
}

/** The name of the source in messages: its path, or "the input". */
export function nameOfSource(source: ByteSource): string {
  if (typeof source === 'string') return source;
  return source instanceof URL ? fileURLToPath(source) : 'the input';
}

/** Uncompressed bytes, and the number of bytes skipped before them. */
export interface PlainBytes {
  /** Length of the byte order mark that was skipped: 0 or 3. */
  skipped: number;
  chunks: AsyncGenerator<Uint8Array>;
}

/**
 * Opens a source, uncompressed and without a UTF-8 byte order mark. gzip is detected by its first
 * bytes, not by the file name.
 *
 * @param name the name of the source in messages
 * @throws TorchError ERR_DATA for a file that is missing or unreadable, damaged gzip data, text in
 * UTF-16 or UTF-32, and files that are not text, such as workbooks and other archives
 */
export async function openBytes(
  source: ByteSource,
  name: string = nameOfSource(source),
): Promise<PlainBytes> {
  const raw = await withHead(chunksOf(source));
  const plain = isGzip(raw.head) ? await withHead(gunzip(raw.chunks, name)) : raw;
  const foreign = foreignFileOf(plain.head);
  if (foreign !== null) {
    await plain.close();
    throw new TorchError(
      'ERR_DATA',
      `${name}: this is ${foreign.what}, but only UTF-8 text is supported, plain or gzip; ` +
        foreign.advice,
    );
  }
  const skipped = lengthOfMark(plain.head);
  return { skipped, chunks: withoutStart(plain.chunks, skipped) };
}

async function* withoutStart(
  chunks: AsyncGenerator<Uint8Array>,
  length: number,
): AsyncGenerator<Uint8Array> {
  let left = length;
  for await (const chunk of chunks) {
    const dropped = Math.min(left, chunk.length);
    left -= dropped;
    if (chunk.length > dropped) yield dropped === 0 ? chunk : chunk.subarray(dropped);
  }
}

async function* chunksOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  if (typeof source === 'string' || source instanceof URL) {
    yield* chunksOfFile(source);
    return;
  }
  for await (const chunk of source) {
    if (!(chunk instanceof Uint8Array)) {
      throw new TypeError(`the source must yield Uint8Array chunks, got ${describe(chunk)}`);
    }
    yield chunk;
  }
}

async function* chunksOfFile(path: string | URL): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(path)) yield chunk as Uint8Array;
  } catch (error) {
    const name = nameOfSource(path);
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT'
        ? `there is no such file (current folder: ${process.cwd()})`
        : code === 'EISDIR'
          ? 'this is a folder, not a file'
          : message;
    throw new TorchError('ERR_DATA', `${name}: ${reason}`, { cause: error });
  }
}

interface HeadedBytes {
  head: Uint8Array;
  /** All bytes, including those of the head. */
  chunks: AsyncGenerator<Uint8Array>;
  /** Closes the source if `chunks` will not be read. */
  close(): Promise<unknown>;
}

/** Reads until the type of the bytes is known (or to the end), keeping all of them. */
async function withHead(chunks: AsyncGenerator<Uint8Array>): Promise<HeadedBytes> {
  let head: Uint8Array = new Uint8Array(0);
  while (needsMoreBytes(head)) {
    const next = await chunks.next();
    if (next.done) break;
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
  }
  async function* replay(): AsyncGenerator<Uint8Array> {
    try {
      if (head.length > 0) yield head;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  }
  return { head, chunks: replay(), close: () => chunks.return(undefined) };
}

async function* gunzip(
  chunks: AsyncGenerator<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array> {
  const unzip = createGunzip();
  // The iteration below reports the failure; without a handler it would be reported twice.
  pipeline(Readable.from(chunks), unzip).catch(() => {});
  try {
    for await (const chunk of unzip) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof TorchError || error instanceof TypeError) throw error;
    const { message } = error as Error;
    throw new TorchError('ERR_DATA', `${name}: the gzip data is damaged or cut short: ${message}`, {
      cause: error,
    });
  }
}
