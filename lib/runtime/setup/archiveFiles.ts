/** Reads the files of a zip archive (such as a wheel) or a gzipped tar archive one by one. */
import { createReadStream, openSync, readSync, closeSync } from 'node:fs';
import { crc32, createGunzip } from 'node:zlib';

/** One file in an archive. */
export interface ArchiveFile {
  readonly name: string;
  readonly size: number;
  readonly link: boolean;
  /** Its content; throws if it is damaged. Can be read only until the next file is requested. */
  content(): AsyncIterable<Buffer>;
}

/** The archive is damaged, truncated or of an unknown kind; the message has only the reason. */
export class ArchiveFault extends Error {}

/** The archive would write outside of the folder that it is unpacked to. */
export class UnsafeArchive extends ArchiveFault {}

/** Iterates over the files of `archive`, without folders. @throws ArchiveFault */
export async function* archiveFiles(archive: string): AsyncGenerator<ArchiveFile> {
  const start = firstBytes(archive);
  const isGzip = start[0] === 0x1f && start[1] === 0x8b;
  try {
    for await (const file of isGzip ? tarFiles(archive) : zipFiles(archive)) {
      yield { ...file, content: () => checkedContent(file) };
    }
  } catch (error) {
    if (!isArchiveError(error)) throw error;
    const { message } = error as Error;
    // yauzl also checks names, and stops at an unsafe one.
    const [, name] =
      /^(?:invalid relative path|absolute path|invalid characters in fileName): (.*)$/s.exec(
        message,
      ) ?? [];
    throw name === undefined ? new ArchiveFault(damaged('it', message)) : unsafeName(name);
  }
}

/** Converts errors of zlib and yauzl, which are thrown outside of the loop over the files. */
async function* checkedContent(file: ArchiveFile): AsyncGenerator<Buffer> {
  try {
    yield* file.content();
  } catch (error) {
    if (!isArchiveError(error)) throw error;
    throw new ArchiveFault(damaged(`${file.name} in it`, (error as Error).message));
  }
}

function damaged(what: string, reason: string): string {
  return `${what} is damaged or truncated (${reason})`;
}

/** The error for a path that leads out of the folder. */
export function unsafeName(name: string): UnsafeArchive {
  return new UnsafeArchive(`it contains an unsafe path, which leads out of its folder: ${name}`);
}

/** Whether the archive is the cause, rather than the system (no space, no permission). */
function isArchiveError(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (!(error instanceof Error) || error instanceof ArchiveFault) return false;
  // Damaged sizes make yauzl read beyond the end.
  return syscall === undefined && (code === undefined || /^Z_|^ERR_OUT_OF_RANGE$/.test(code));
}

function firstBytes(path: string): Buffer {
  const buffer = Buffer.alloc(4);
  const file = openSync(path, 'r');
  try {
    readSync(file, buffer, 0, buffer.length, 0);
  } finally {
    closeSync(file);
  }
  return buffer;
}

// ---- zip ----------------------------------------------------------------------------------------

const fileTypeMask = 0o170000;
const linkType = 0o120000;

async function* zipFiles(archive: string): AsyncGenerator<ArchiveFile> {
  // Only setup needs it, so it is not loaded with the package.
  const { openPromise } = await import('yauzl');
  const zip = await openPromise(archive, { autoClose: false, lazyEntries: true });
  try {
    for await (const entry of zip.eachEntry()) {
      if (entry.fileName.endsWith('/')) continue;
      const mode = entry.externalFileAttributes >>> 16;
      yield {
        name: entry.fileName,
        size: entry.uncompressedSize,
        link: (mode & fileTypeMask) === linkType,
        content: async function* () {
          // yauzl checks the sizes, but not the checksum.
          let checksum = 0;
          for await (const chunk of await zip.openReadStreamPromise(entry)) {
            checksum = crc32(chunk as Buffer, checksum);
            yield chunk as Buffer;
          }
          if (checksum !== entry.crc32) {
            throw new ArchiveFault(`${entry.fileName} in it is damaged (wrong checksum)`);
          }
        },
      };
    }
  } finally {
    zip.close();
  }
}

// ---- tar ----------------------------------------------------------------------------------------

const block = 512;
const files = ['0', '\0', '7'];
const links = ['1', '2'];
const longName = 'L';
const extension = 'x';
const ignored = ['5', 'g', 'K'];
/** Long names are held in memory, and no file system accepts more than 4 kB. */
const longestName = 64 * 1024;

/** Reads a stream in pieces of the requested sizes. */
class ByteSource {
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Buffer>) {
    this.chunks = stream[Symbol.asyncIterator]();
  }

  /** At most `size` bytes, at least one. */
  async some(size: number): Promise<Buffer> {
    while (this.rest.length === 0) {
      const next = await this.chunks.next();
      if (next.done === true) throw new ArchiveFault('it is truncated');
      this.rest = next.value;
    }
    const part = this.rest.subarray(0, size);
    this.rest = this.rest.subarray(part.length);
    return part;
  }

  async exactly(size: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = size; left > 0;) {
      const part = await this.some(left);
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }
}

async function* tarFiles(archive: string): AsyncGenerator<ArchiveFile> {
  const file = createReadStream(archive);
  const unzipped = file.pipe(createGunzip());
  file.on('error', (error) => unzipped.destroy(error));
  const source = new ByteSource(unzipped as AsyncIterable<Buffer>);
  try {
    let name: string | null = null;
    for (;;) {
      const header = await source.exactly(block);
      // Two empty blocks mark the end; the rest is padding.
      if (header.every((byte) => byte === 0)) return;
      const type = String.fromCharCode(header[156] ?? 0);
      const size = checkedSize(header);
      const padding = (block - (size % block)) % block;
      if (type === longName || type === extension) {
        if (size > longestName) {
          throw new ArchiveFault(
            `it contains a name of ${size} bytes; the limit is ${longestName}`,
          );
        }
        const text = (await source.exactly(size)).toString('utf8');
        const path = type === longName ? text.replace(/\0.*$/s, '') : extendedPath(text);
        await source.exactly(padding);
        if (path !== null) name = path;
        continue;
      }
      if (![...files, ...links, ...ignored].includes(type)) {
        throw new ArchiveFault(`it contains an entry of type ${JSON.stringify(type)}`);
      }
      let left = size;
      const read = async function* (): AsyncGenerator<Buffer> {
        while (left > 0) {
          const part = await source.some(left);
          left -= part.length;
          yield part;
        }
      };
      if (!ignored.includes(type)) {
        yield { name: name ?? headerName(header), size, link: links.includes(type), content: read };
      }
      // Skips what was not read.
      for await (const part of read()) void part;
      await source.exactly(padding);
      name = null;
    }
  } finally {
    file.destroy();
    unzipped.destroy();
  }
}

function checkedSize(header: Buffer): number {
  const stored = parseInt(text(header, 148, 8), 8);
  let sum = 8 * 0x20;
  for (let index = 0; index < block; index++) {
    if (index < 148 || index >= 156) sum += header[index] ?? 0;
  }
  if (sum !== stored) throw new ArchiveFault('it is not a tar archive, or is damaged');
  // Sizes of 8 GB and more are binary, with the first bit set.
  const size =
    (header[124] ?? 0) & 0x80
      ? Number(header.readBigUInt64BE(128))
      : parseInt(text(header, 124, 12), 8);
  if (!Number.isSafeInteger(size)) throw new ArchiveFault('it contains a file without a size');
  return size;
}

function headerName(header: Buffer): string {
  const name = text(header, 0, 100);
  const isUstar = header.toString('latin1', 257, 262) === 'ustar';
  const prefix = isUstar ? text(header, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** The `path` of a pax header, which has lines `<length> <key>=<value>`. */
function extendedPath(content: string): string | null {
  return /^\d+ path=(.*)$/m.exec(content)?.[1] ?? null;
}

function text(header: Buffer, start: number, length: number): string {
  return header.toString('utf8', start, start + length).replace(/\0.*$/s, '');
}
