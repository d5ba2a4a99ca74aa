/** Reading and writing safetensors files, with one piece of one tensor in memory at a time. */
import { TorchError } from '../runtime/errors.js';
import { checkObject, checkOptions, checkPath, describe } from '../runtime/arguments.js';
import { checkTensor } from '../tensor/check.js';
import { empty, fromBytes } from '../tensor/create.js';
import type { DeviceChoice } from '../tensor/device.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { writeFileAtomically, type ByteSink } from './atomicFile.js';
import { Fingerprint } from './fingerprint.js';
import { ReadableFile } from './readableFile.js';
import {
  buildHeader,
  checkpointFault,
  dtypeNames,
  formatDType,
  itemSize,
  lengthBytes,
  parseHeader,
  readHeaderLength,
  type SafetensorsHeader,
  type TensorEntry,
} from './safetensorsHeader.js';

// A multiple of every element size; large enough that the cost of the calls is negligible, small enough
// to yield to the event loop every few milliseconds.
const pieceBytes = 2 ** 21;

/** The result of {@link SafetensorsFile.info}. */
export interface TensorInfo {
  /** Element type as named by the format: `F32`, `BF16`, `I64`, … */
  readonly dtype: string;
  /** Sizes of the dimensions; `[]` for a scalar. */
  readonly shape: readonly number[];
}

/** An open safetensors file: the header is read and checked, tensors are read on demand. */
export class SafetensorsFile {
  /** The path of the file. */
  readonly path: string;
  /** The strings of the header's `__metadata__`. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly #file: ReadableFile;
  readonly #entries: ReadonlyMap<string, TensorEntry>;
  readonly #dataStart: number;

  private constructor(file: ReadableFile, header: SafetensorsHeader, dataStart: number) {
    // TypeScript rejects such a call, JavaScript does not.
    if (header === undefined) {
      throw new TypeError(
        'SafetensorsFile: the constructor is private; use await readSafetensors(path)',
      );
    }
    this.path = file.path;
    this.metadata = header.metadata;
    this.#file = file;
    this.#entries = header.entries;
    this.#dataStart = dataStart;
  }

  /** @internal See {@link readSafetensors}. */
  static async open(path: string): Promise<SafetensorsFile> {
    checkPath('SafetensorsFile.open', 'path', path);
    const file = await ReadableFile.open(path);
    try {
      const size = await file.size();
      const start = new Uint8Array(Math.min(lengthBytes, size));
      await file.read(start, 0);
      const length = readHeaderLength(path, start, size);
      const json = new Uint8Array(length);
      await file.read(json, lengthBytes);
      const dataStart = lengthBytes + length;
      const header = parseHeader(path, json, size - dataStart);
      return new SafetensorsFile(file, header, dataStart);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Names of the tensors in the order of their data. */
  get names(): string[] {
    return [...this.#entries.keys()];
  }

  /** Whether the file has a tensor with this name. */
  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Element type and shape of a tensor, without reading it. @throws TorchError ERR_CHECKPOINT */
  info(name: string): TensorInfo {
    const { dtype, shape } = this.#entry(name);
    return { dtype, shape };
  }

  /**
   * Reads one tensor, without reading the rest of the file.
   *
   * @param options.device device of the tensor; default `'cpu'`
   * @throws TorchError ERR_CHECKPOINT if the name is unknown, the element type is not supported, or
   *   the file has been truncated since it was opened; ERR_DISPOSED after
   *   {@link SafetensorsFile.close}
   */
  async tensor(name: string, options: { device?: DeviceChoice | undefined } = {}): Promise<Tensor> {
    checkOptions('SafetensorsFile.tensor', options, ['device']);
    const { device = 'cpu' } = options;
    const entry = this.#entry(name);
    const dtype = dtypeNames[entry.dtype];
    if (dtype === undefined) {
      throw checkpointFault(
        this.path,
        `tensor ${JSON.stringify(name)} has dtype ${entry.dtype}, which tensors here cannot have; ` +
          `supported: ${Object.keys(dtypeNames).join(', ')}`,
      );
    }
    const size = itemSize(entry.dtype) as number;
    const result = empty(entry.shape, { dtype, device });
    try {
      for (let begin = entry.begin; begin < entry.end; begin += pieceBytes) {
        const bytes = new Uint8Array(Math.min(pieceBytes, entry.end - begin));
        await this.#file.read(bytes, this.#dataStart + begin);
        tidy(() => {
          const count = bytes.byteLength / size;
          // Booleans are read as numbers: a byte other than 0 and 1 is not a valid bool in memory.
          const piece = fromBytes(bytes, [count], dtype === 'bool' ? 'uint8' : dtype);
          result
            .view([-1])
            .narrow(0, (begin - entry.begin) / size, count)
            .copy_(piece);
        });
      }
      return result;
    } catch (error) {
      result.dispose();
      throw error;
    }
  }

  /** Reads all tensors: a state dict for `loadStateDict`. */
  async tensors(options: { device?: DeviceChoice | undefined } = {}): Promise<Map<string, Tensor>> {
    const read = new Map<string, Tensor>();
    try {
      for (const name of this.#entries.keys()) read.set(name, await this.tensor(name, options));
      return read;
    } catch (error) {
      for (const tensor of read.values()) tensor.dispose();
      throw error;
    }
  }

  /**
   * Closes the file; tensors already read remain valid. Repeated calls have no effect. A file that is
   * not closed remains open until this object is garbage-collected.
   */
  async close(): Promise<void> {
    await this.#file.close();
  }

  /**
   * Calls {@link SafetensorsFile.close} at the end of a block: `await using file = await
   * readSafetensors(…)`.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #entry(name: string): TensorEntry {
    const entry = this.#entries.get(name);
    if (entry === undefined) {
      const names = this.names;
      const some = names.slice(0, 8).join(', ');
      throw checkpointFault(
        this.path,
        `no tensor named ${JSON.stringify(name)}; it has ${names.length}: ` +
          `${some}${names.length > 8 ? ', …' : ''}`,
      );
    }
    return entry;
  }
}

/**
 * Opens a safetensors file of any size and checks its whole header: names, dtypes, shapes, offsets
 * without overlaps or holes, and the length of the file. Close it after use.
 *
 * ```ts
 * const file = await readSafetensors('model.safetensors');
 * const weight = await file.tensor('generator.proj.weight');
 * await file.close();
 * ```
 *
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export async function readSafetensors(path: string): Promise<SafetensorsFile> {
  checkPath('readSafetensors', 'path', path);
  return SafetensorsFile.open(path);
}

/**
 * Writes tensors to a safetensors file, through a temporary file that replaces `path` only once it is
 * complete and on the disk. Elements are written in row-major order whatever the strides, widest
 * element type first, so that each tensor is aligned for its type.
 *
 * The file has the values at the time of the call, or it is not written: tensors are read piece by
 * piece, without a copy that would double their memory, and a change before the promise settles is an
 * error. Await it before training continues, or pass a copy: `model.clone().stateDict()`.
 *
 * @param tensors tensors by name, such as a module's `stateDict()`
 * @param metadata strings for the header; default none
 * @throws TypeError if `path` is not a path, a tensor is not a Tensor or a metadata value is not a string
 * @throws RangeError if names and metadata exceed 100 MB, the limit of the format
 * @throws TorchError ERR_CHECKPOINT if the file cannot be saved, or a tensor was changed in the
 *   meantime; the old file is then unchanged
 */
export async function writeSafetensors(
  path: string,
  tensors: ReadonlyMap<string, Tensor> | Readonly<Record<string, Tensor>>,
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  checkPath('writeSafetensors', 'path', path);
  const write = safetensorsWriter(tensors, metadata);
  await writeFileAtomically(path, write);
}

/** Returns a function that writes the content of a safetensors file to a sink. @internal */
export function safetensorsWriter(
  tensors: ReadonlyMap<string, Tensor> | Readonly<Record<string, Tensor>>,
  metadata: Readonly<Record<string, string>>,
): (sink: ByteSink) => Promise<void> {
  const owner = 'writeSafetensors';
  checkObject(owner, 'tensors', tensors, 'a Map or an object of Tensors by name');
  checkObject(owner, 'metadata', metadata, 'an object of strings');
  const entries =
    tensors instanceof Map
      ? [...(tensors as ReadonlyMap<string, Tensor>)]
      : Object.entries(tensors as Readonly<Record<string, Tensor>>);
  for (const [name, tensor] of entries) {
    checkName(name);
    checkTensor(owner, `tensors ${JSON.stringify(name)}`, tensor);
  }
  for (const [key, text] of Object.entries(metadata)) {
    if (typeof text !== 'string') {
      throw new TypeError(
        `writeSafetensors: metadata ${JSON.stringify(key)} must be a string, got ${describe(text)}`,
      );
    }
    if (!isWellFormed(key) || !isWellFormed(text)) {
      throw new TypeError(
        `writeSafetensors: metadata ${JSON.stringify(key)} is not valid Unicode text`,
      );
    }
  }
  const width = (tensor: Tensor) => itemSize(formatDType(tensor.dtype)) as number;
  entries.sort(([, a], [, b]) => width(b) - width(a));
  const shapes = entries.map(([name, { dtype, shape }]) => ({ name, dtype, shape }));
  const header = buildHeader(shapes, metadata);
  const fingerprints = entries.map(([, tensor]) => new Fingerprint(tensor));
  return async (sink) => {
    await sink(header);
    for (const [index, [name, tensor]] of entries.entries()) {
      if (!tensor.isDisposed) await writeElements(tensor, width(tensor), sink);
      // Checked after the last byte: an unchanged tensor was unchanged throughout.
      if (!tensor.isDisposed && fingerprints[index]?.matches()) continue;
      throw new TorchError(
        'ERR_CHECKPOINT',
        `writeSafetensors: tensor ${JSON.stringify(name)} was changed or disposed of while it was being ` +
          'saved; await the save first. What was there before is unchanged',
      );
    }
  };
}

async function writeElements(tensor: Tensor, size: number, sink: ByteSink): Promise<void> {
  // `detach` creates a new handle: disposing of it does not affect the caller's tensor.
  const flat = tidy(() => tensor.detach().contiguous().view([-1]));
  try {
    const count = pieceBytes / size;
    for (let at = 0; at < flat.numel; at += count) {
      const piece = tidy(() => flat.narrow(0, at, Math.min(count, flat.numel - at)).bytes());
      await sink(piece);
    }
  } finally {
    flat.dispose();
  }
}

function checkName(name: string): void {
  if (name === '__metadata__') {
    throw new TypeError(
      'writeSafetensors: "__metadata__" is reserved by the format; rename the tensor',
    );
  }
  // A lone surrogate has no UTF-8 encoding: the name would change on reading.
  if (!isWellFormed(name)) {
    throw new TypeError(
      `writeSafetensors: the name ${JSON.stringify(name)} is not valid Unicode text`,
    );
  }
}

function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
