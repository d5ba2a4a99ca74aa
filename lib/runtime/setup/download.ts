/** Downloads that can be continued after an interruption, and whose checksum is verified. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Response } from 'undici';
import { checkSpace, explainWriteFault, size } from '../diskSpace.js';
import { TorchError } from '../errors.js';
import { connectionFault, plainUrl, request } from './http.js';
import { withLock } from '../lock.js';
import { makeFolder } from '../makeFolder.js';

/** Options of {@link download}. */
export interface DownloadOptions {
  /** The folder for the file and for unfinished parts. */
  readonly folder: string;
  /** The SHA-256 of the file; undefined: it is not checked. */
  readonly sha256: string | undefined;
  /** Called with each line of progress. */
  readonly log: (line: string) => void;
}

/** How often the connection may break without receiving any more bytes. */
const fruitlessTries = 3;

/**
 * Downloads `url` to the folder. An interrupted download is kept there and continued, if the server
 * supports this and still has the same file; a complete file is not downloaded again.
 *
 * @returns the path of the file
 * @throws TorchError ERR_NATIVE_LOAD
 */
export async function download(url: string, options: DownloadOptions): Promise<string> {
  const { folder, sha256, log } = options;
  await makeFolder(folder);
  const file = join(folder, fileName(url));
  return await withLock(
    `${file}.lock`,
    (holder) => log(`waiting for another download of ${plainUrl(url)} (${holder})`),
    async () => {
      if (!(await exists(file))) {
        log(`fetching ${plainUrl(url)}`);
        try {
          await new Transfer(url, `${file}.part`, options).run();
        } catch (error) {
          throw await explainWriteFault(error, folder);
        }
        await rename(`${file}.part`, file);
        await rm(`${file}.part.json`, { force: true });
      }
      if (sha256 === undefined) return file;
      try {
        await checkSum(file, sha256);
      } catch (error) {
        // Kept, it would be continued or taken for the file the next time.
        await rm(file, { force: true });
        throw error;
      }
      return file;
    },
  );
}

/** Files of the same name from different URLs get different names. */
function fileName(url: string): string {
  const plain = plainUrl(url);
  const key = createHash('sha256').update(plain).digest('hex').slice(0, 12);
  const name = basename(decodeURIComponent(new URL(plain).pathname)).replace(/[^\w.+-]/g, '_');
  return `${key}-${name || 'download'}`;
}

/** Identifies the file on the server, to check whether a part still belongs to it. */
interface Validator {
  readonly etag?: string;
  readonly lastModified?: string;
}

class Transfer {
  constructor(
    private readonly url: string,
    private readonly part: string,
    private readonly options: DownloadOptions,
  ) {}

  /** Downloads the rest of the file to the part. */
  async run(): Promise<void> {
    let fruitless = 0;
    for (;;) {
      const before = await sizeOf(this.part);
      try {
        await this.attempt(before);
        return;
      } catch (error) {
        if (!(error instanceof Broken)) throw error;
        const after = await sizeOf(this.part);
        fruitless = after > before ? 0 : fruitless + 1;
        if (fruitless === fruitlessTries || error.final) {
          throw this.givenUp(after, error.cause as TorchError);
        }
        this.options.log(`  interrupted after ${size(after)}; trying again`);
        await sleep(200 * (fruitless + 1));
      }
    }
  }

  private givenUp(have: number, error: TorchError): TorchError {
    const kept =
      have > 0
        ? ` The ${size(have)} received are kept: the same command continues from there.`
        : '';
    return new TorchError('ERR_NATIVE_LOAD', error.message + kept, { cause: error });
  }

  private async attempt(have: number): Promise<void> {
    const headers = {
      // Sizes and checksums are those of the file itself.
      'accept-encoding': 'identity',
      ...(have > 0 ? await this.rangeHeaders(have) : {}),
    };
    let answered = false;
    try {
      await request(this.url, headers, (response) => {
        answered = true;
        return this.receive(response, have);
      });
    } catch (error) {
      throw answered ? error : new Broken(error, have === 0);
    }
  }

  private async receive(response: Response, have: number): Promise<void> {
    const { status, headers } = response;
    if (status === 416) return await this.beyondTheEnd(have, headers.get('content-range'));
    if (status >= 500 || status === 429) {
      throw new Broken(connectionFault(this.url, new Error(`HTTP ${status}`)), false);
    }
    if (!response.ok || response.body === null) {
      throw connectionFault(this.url, new Error(`HTTP ${status} ${response.statusText}`.trim()));
    }
    // A server that cannot continue, or has another file now, sends the whole file.
    const start = status === 206 ? rangeStart(headers.get('content-range')) : 0;
    if (start !== 0 && start !== have) {
      await rm(this.part, { force: true });
      throw new Broken(
        connectionFault(this.url, new Error('the server sent the wrong range')),
        false,
      );
    }
    const length = headers.get('content-length');
    const total = length === null ? null : start + Number(length);
    if (total !== null) {
      await checkSpace(this.options.folder, total - start, `fetching ${plainUrl(this.url)}`);
    }
    await this.keepValidator(headers);
    if (start > 0) this.options.log(`  continuing after ${size(start)}`);

    const progress = new Progress(total, start, this.options.log);
    const body = Readable.fromWeb(response.body as never);
    try {
      await pipeline(
        body,
        progress,
        createWriteStream(this.part, { flags: start > 0 ? 'a' : 'w' }),
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall === 'write') throw error;
      throw new Broken(connectionFault(this.url, error), false);
    }
    const end = await sizeOf(this.part);
    if (total !== null && end < total) {
      const message = `it ended after ${end} of ${total} bytes`;
      throw new Broken(connectionFault(this.url, new Error(message)), false);
    }
  }

  /** Handles HTTP 416: the part is already complete, or does not belong to this file. */
  private async beyondTheEnd(have: number, range: string | null): Promise<void> {
    if (range === `bytes */${have}`) return;
    await rm(this.part, { force: true });
    await rm(`${this.part}.json`, { force: true });
    throw new Broken(connectionFault(this.url, new Error('HTTP 416')), have === 0);
  }

  private async rangeHeaders(have: number): Promise<Record<string, string>> {
    let validator: Validator = {};
    try {
      validator = JSON.parse(await readFile(`${this.part}.json`, 'utf8')) as Validator;
    } catch {
      // The process was killed before it was written; a checksum detects a wrong part.
    }
    const known = validator.etag ?? validator.lastModified;
    if (known === undefined && this.options.sha256 === undefined) return {};
    return { range: `bytes=${have}-`, ...(known === undefined ? {} : { 'if-range': known }) };
  }

  private async keepValidator(headers: Response['headers']): Promise<void> {
    const etag = headers.get('etag');
    const lastModified = headers.get('last-modified');
    // A weak ETag does not guarantee equal bytes.
    const validator: Validator = {
      ...(etag !== null && !etag.startsWith('W/') ? { etag } : {}),
      ...(lastModified !== null ? { lastModified } : {}),
    };
    await writeFile(`${this.part}.json`, JSON.stringify(validator));
  }
}

/** A connection that broke; unless it is final, the download is tried again. */
class Broken extends Error {
  constructor(
    cause: unknown,
    readonly final: boolean,
  ) {
    super('interrupted', { cause });
  }
}

/**
 * Passes bytes on and reports progress at each tenth of the file, or every 50 MB if its size is not
 * known. For a small file, only the end is reported.
 */
class Progress extends Transform {
  private reported: number;

  constructor(
    private readonly total: number | null,
    private done: number,
    private readonly log: (line: string) => void,
  ) {
    super();
    this.reported = this.step();
  }

  override _transform(
    chunk: Buffer,
    _: BufferEncoding,
    callback: (error: null, chunk: Buffer) => void,
  ): void {
    this.done += chunk.length;
    const step = this.step();
    if (step > this.reported) {
      this.reported = step;
      this.log(
        this.total === null
          ? `  ${size(this.done)}`
          : `  ${Math.floor((100 * this.done) / this.total)} % of ${size(this.total)}`,
      );
    }
    callback(null, chunk);
  }

  private step(): number {
    if (this.total === null) return Math.floor(this.done / 50e6);
    const steps = this.total < 20e6 ? 1 : 10;
    return Math.floor((steps * this.done) / this.total);
  }
}

function rangeStart(contentRange: string | null): number {
  return Number(/^bytes (\d+)-/.exec(contentRange ?? '')?.[1] ?? NaN);
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** @throws TorchError ERR_NATIVE_LOAD naming both checksums */
export async function checkSum(file: string, expected: string): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  const actual = hash.digest('hex');
  if (actual === expected.toLowerCase()) return;
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `${file} has SHA-256 ${actual}, expected ${expected}: it is a different file, or damaged; ` +
      'download it again, or pass the checksum from its publisher',
  );
}
