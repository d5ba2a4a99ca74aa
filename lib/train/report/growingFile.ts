/** A file that a training run appends to, without making a step wait for the disk. */
import { open, type FileHandle } from 'node:fs/promises';
import { saveFault } from '../../io/atomicFile.js';

/** Milliseconds that bytes wait in memory at most, while the process runs. */
const longestWait = 2000;
/** Bytes that are written without waiting for that. */
const enoughBytes = 256 * 1024;

/**
 * Collects bytes in memory and writes them to the end of a file. A failed write loses nothing: it is
 * tried again with the next bytes, and {@link GrowingFile.close} reports it if it never succeeds.
 */
export class GrowingFile {
  /** Path of the file. */
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #warn: (message: string) => void;
  /** Not yet written, in order. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Bytes in the file; a write that failed in the middle is continued here. */
  #written: number;
  #writes: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  /** Of the last write; null if it succeeded. */
  #fault: Error | null = null;

  private constructor(
    path: string,
    handle: FileHandle,
    length: number,
    warn: (message: string) => void,
  ) {
    this.path = path;
    this.#handle = handle;
    this.#written = length;
    this.#warn = warn;
  }

  /**
   * @param flags `'w'`: a new file, in place of an old one; `'wx'`: a new file; `'r+'`: an old one
   * @param length bytes of the old file to keep
   * @param warn receives the message of a failed write; not again until one has succeeded
   * @throws the system's error
   */
  static async open(
    path: string,
    flags: 'w' | 'wx' | 'r+',
    length: number,
    warn: (message: string) => void,
  ): Promise<GrowingFile> {
    const handle = await open(path, flags);
    try {
      await handle.truncate(length);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new GrowingFile(path, handle, length, warn);
  }

  /** Takes bytes, which must not change afterwards, or a text. */
  append(content: Uint8Array | string): void {
    const bytes =
      typeof content === 'string'
        ? Buffer.from(content)
        : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes >= enoughBytes) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), longestWait).unref();
  }

  /** Hands everything to the system. Never rejects. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#writes = this.#writes.then(() => this.#write());
    return this.#writes;
  }

  /** @throws TorchError ERR_CHECKPOINT if the last bytes could not be written */
  async close(): Promise<void> {
    await this.flush();
    await this.#handle.close();
    if (this.#fault !== null) throw this.#fault;
  }

  async #write(): Promise<void> {
    if (this.#waiting.length === 0) return;
    let bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      while (bytes.length > 0) {
        const { bytesWritten } = await this.#handle.write(bytes, 0, bytes.length, this.#written);
        this.#written += bytesWritten;
        bytes = bytes.subarray(bytesWritten);
      }
      this.#fault = null;
    } catch (error) {
      // What was appended meanwhile comes after it.
      this.#waiting.unshift(bytes);
      this.#waitingBytes += bytes.length;
      const isFirst = this.#fault === null;
      this.#fault = saveFault(this.path, error);
      if (isFirst) this.#warn(`${this.#fault.message}; it is tried again`);
    }
  }
}
