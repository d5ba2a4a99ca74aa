/** Files that are read piece by piece, and closed at the latest when their object is collected. */
import { close, fstat, open, read, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { TorchError } from '../runtime/errors.js';
import { checkpointFault } from './safetensorsHeader.js';

const openFile = promisify(open);
const closeFile = promisify(close);
const statFile = promisify<number, Stats>(fstat);
const readFile = promisify(read);

/**
 * Closes files that their owner forgot to close. Not a `FileHandle`: Node.js warns when an open one is
 * collected, and from version 26 on throws an error that ends the process.
 */
const forgotten = new FinalizationRegistry<number>((descriptor) => close(descriptor, () => {}));

/** A file open for reading. */
export class ReadableFile {
  readonly path: string;
  /** Null once it is closed. */
  #descriptor: number | null;
  readonly #reads = new Set<Promise<unknown>>();

  private constructor(path: string, descriptor: number) {
    this.path = path;
    this.#descriptor = descriptor;
    forgotten.register(this, descriptor, this);
  }

  /** @throws TorchError ERR_CHECKPOINT naming the file and the reason */
  static async open(path: string): Promise<ReadableFile> {
    let descriptor: number;
    try {
      descriptor = await openFile(path, 'r');
    } catch (error) {
      throw openFault(path, error);
    }
    const file = new ReadableFile(path, descriptor);
    const status = await statFile(descriptor);
    if (status.isFile()) return file;
    await file.close();
    throw checkpointFault(path, status.isDirectory() ? 'it is a folder, not a file' : 'not a file');
  }

  /** Its current length in bytes. */
  async size(): Promise<number> {
    return (await this.#use((descriptor) => statFile(descriptor))).size;
  }

  /**
   * Fills `bytes` with the file's content starting at `position`.
   * @throws TorchError ERR_CHECKPOINT if the file is too short, ERR_DISPOSED if it is closed
   */
  async read(bytes: Uint8Array, position: number): Promise<void> {
    let filled = 0;
    while (filled < bytes.byteLength) {
      const length = bytes.byteLength - filled;
      const { bytesRead } = await this.#use((descriptor) =>
        readFile(descriptor, bytes, filled, length, position + filled),
      );
      if (bytesRead === 0) {
        throw checkpointFault(
          this.path,
          `truncated while it was read: ${position + bytes.byteLength} bytes expected, ` +
            `it ends after ${position + filled}`,
        );
      }
      filled += bytesRead;
    }
  }

  /** Closes the file after the reads in progress. Repeated calls have no effect. */
  async close(): Promise<void> {
    const descriptor = this.#descriptor;
    if (descriptor === null) return;
    this.#descriptor = null;
    forgotten.unregister(this);
    // Once closed, the descriptor may be reused for another file.
    await Promise.allSettled(this.#reads);
    await closeFile(descriptor);
  }

  async #use<T>(act: (descriptor: number) => Promise<T>): Promise<T> {
    if (this.#descriptor === null) {
      throw new TorchError(
        'ERR_DISPOSED',
        `${this.path}: the file has been closed; open it again with readSafetensors(path)`,
      );
    }
    const reading = act(this.#descriptor);
    this.#reads.add(reading);
    try {
      return await reading;
    } finally {
      this.#reads.delete(reading);
    }
  }
}

function openFault(path: string, error: unknown): TorchError {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'no such file',
    ENOTDIR: 'no such file: a part of the path is a file, not a folder',
  };
  const reason = reasons[code ?? ''] ?? `cannot be opened (${message})`;
  return checkpointFault(path, reason, error);
}
