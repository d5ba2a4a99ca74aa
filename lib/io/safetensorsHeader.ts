/**
 * The header of a safetensors file: `u64 length | JSON | data`. Everything in it is checked before any
 * data is used, and each fault has its own message.
 */
import { TorchError } from '../runtime/errors.js';
import { describe } from '../runtime/arguments.js';
import type { NativeDType } from '../tensor/native.js';
import { otherFormat } from './otherFormats.js';
import { findDuplicateKey } from './jsonKeys.js';

/** Size of the little-endian length before the header, in bytes. */
export const lengthBytes = 8;

// The limit of the reference implementation: anything longer is an attack or not a header.
const headerLimit = 100_000_000;

/** Element types of the format that are supported, with their dtypes. */
export const dtypeNames: Readonly<Record<string, NativeDType>> = {
  BOOL: 'bool',
  U8: 'uint8',
  I8: 'int8',
  I16: 'int16',
  I32: 'int32',
  I64: 'int64',
  F16: 'float16',
  BF16: 'bfloat16',
  F32: 'float32',
  F64: 'float64',
};

const itemSizes: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  I16: 2,
  I32: 4,
  I64: 8,
  F16: 2,
  BF16: 2,
  F32: 4,
  F64: 8,
  // Part of the format, but not supported: such files open, but reading these entries is an error.
  F8_E4M3: 1,
  F8_E5M2: 1,
  F8_E8M0: 1,
  U16: 2,
  U32: 4,
  U64: 8,
  C64: 8,
};

/** The header's entry for one tensor. */
export interface TensorEntry {
  readonly name: string;
  /** Element type as named by the format, such as `F32`. */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Offset of the first byte in the data part. */
  readonly begin: number;
  /** Offset after the last byte. */
  readonly end: number;
}

export interface SafetensorsHeader {
  /** In the order of their data. */
  readonly entries: ReadonlyMap<string, TensorEntry>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Bytes per element of a format dtype; undefined if the format has no such dtype. */
export function itemSize(dtype: string): number | undefined {
  return Object.hasOwn(itemSizes, dtype) ? itemSizes[dtype] : undefined;
}

/** Converts a tensor dtype to the format's name. */
export function formatDType(dtype: NativeDType): string {
  for (const [name, known] of Object.entries(dtypeNames)) if (known === dtype) return name;
  throw new TypeError(`safetensors: no element type for ${describe(dtype)}`);
}

/** The error for a faulty file, shared by all readers. */
export function checkpointFault(file: string, fault: string, cause?: unknown): TorchError {
  return new TorchError(
    'ERR_CHECKPOINT',
    `${file}: ${fault}`,
    cause === undefined ? {} : { cause },
  );
}

/**
 * Reads the length before the header.
 *
 * @param start the first 8 bytes, or all bytes of a shorter file
 * @param fileSize size of the whole file in bytes
 * @throws TorchError ERR_CHECKPOINT
 */
export function readHeaderLength(file: string, start: Uint8Array, fileSize: number): number {
  if (start.byteLength < lengthBytes) {
    throw checkpointFault(
      file,
      `not a safetensors file: ${fileSize} bytes, but the header length alone takes ${lengthBytes}`,
    );
  }
  const length = new DataView(start.buffer, start.byteOffset, lengthBytes).getBigUint64(0, true);
  if (length > BigInt(headerLimit)) {
    // Checked only here: the known formats all start with bytes that exceed the limit.
    const claim = `not a safetensors file: it claims a header of ${length} bytes, the limit is ${headerLimit}`;
    throw checkpointFault(file, otherFormat(start) ?? claim);
  }
  if (Number(length) > fileSize - lengthBytes) {
    throw checkpointFault(
      file,
      `truncated: the header needs ${length} bytes after the first ${lengthBytes}, ` +
        `the file has ${fileSize} bytes in all`,
    );
  }
  return Number(length);
}

/**
 * Reads and checks the JSON part.
 *
 * @param bytes the header without its length
 * @param dataSize number of bytes after the header in the file
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export function parseHeader(file: string, bytes: Uint8Array, dataSize: number): SafetensorsHeader {
  const fault = (text: string, cause?: unknown) => checkpointFault(file, text, cause);
  const json = decodeUtf8(file, bytes);
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    throw fault(`the header is not valid JSON (${(error as Error).message})`, error);
  }
  if (!isRecord(parsed)) {
    throw fault(`the header must be a JSON object, got ${describe(parsed)}`);
  }
  const duplicate = findDuplicateKey(json);
  if (duplicate !== null) {
    throw fault(`the header has the name ${JSON.stringify(duplicate)} twice`);
  }

  let metadata: Record<string, string> = {};
  const entries: TensorEntry[] = [];
  for (const [name, value] of Object.entries(parsed)) {
    if (name === '__metadata__') metadata = parseMetadata(file, value);
    else entries.push(parseEntry(file, name, value));
  }
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  checkLayout(file, entries, dataSize);
  return { entries: new Map(entries.map((entry) => [entry.name, entry])), metadata };
}

function decodeUtf8(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw checkpointFault(file, 'the header is not valid UTF-8', error);
  }
}

function parseMetadata(file: string, value: unknown): Record<string, string> {
  if (!isRecord(value)) {
    throw checkpointFault(file, `__metadata__ must be an object, got ${describe(value)}`);
  }
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== 'string') {
      throw checkpointFault(
        file,
        `__metadata__ ${JSON.stringify(key)} must be a string, got ${describe(text)}`,
      );
    }
  }
  return value as Record<string, string>;
}

function parseEntry(file: string, name: string, value: unknown): TensorEntry {
  const fault = (text: string) => checkpointFault(file, `tensor ${JSON.stringify(name)}: ${text}`);
  if (!isRecord(value)) throw fault(`its entry must be an object, got ${describe(value)}`);
  const { dtype, shape, data_offsets: offsets } = value;

  const size = typeof dtype === 'string' ? itemSize(dtype) : undefined;
  if (typeof dtype !== 'string' || size === undefined) {
    throw fault(
      `unknown dtype ${JSON.stringify(dtype)}; known: ${Object.keys(itemSizes).join(', ')}`,
    );
  }

  if (!Array.isArray(shape)) throw fault(`its shape must be an array, got ${describe(shape)}`);
  for (const length of shape) {
    if (!Number.isSafeInteger(length) || length < 0) {
      throw fault(`its shape ${JSON.stringify(shape)} must hold integers from 0 to 2^53 - 1`);
    }
  }
  const bytes = byteLength(shape as number[], size);
  if (bytes === null) {
    throw fault(`its shape ${JSON.stringify(shape)} overflows: more than 2^53 - 1 bytes`);
  }

  if (!Array.isArray(offsets) || offsets.length !== 2) {
    throw fault(`its data_offsets must be two numbers, got ${JSON.stringify(offsets)}`);
  }
  const [begin, end] = offsets as [unknown, unknown];
  for (const offset of [begin, end]) {
    if (typeof offset !== 'number' || !Number.isInteger(offset)) {
      throw fault(`its data_offsets ${JSON.stringify(offsets)} must be integers`);
    }
    if (offset < 0) throw fault(`its data_offsets ${JSON.stringify(offsets)} are negative`);
    if (!Number.isSafeInteger(offset)) {
      throw fault(`its data_offsets ${JSON.stringify(offsets)} exceed 2^53 - 1`);
    }
  }
  const first = begin as number;
  const last = end as number;
  if (last < first) throw fault(`its data_offsets ${JSON.stringify(offsets)} are reversed`);
  if (last - first !== bytes) {
    throw fault(
      `${dtype} of shape ${JSON.stringify(shape)} takes ${bytes} bytes, ` +
        `but its data_offsets ${JSON.stringify(offsets)} hold ${last - first}`,
    );
  }
  return { name, dtype, shape: shape as number[], begin: first, end: last };
}

/** Size of a tensor in bytes; null if it is not a safe integer. */
export function byteLength(shape: readonly number[], size: number): number | null {
  let bytes = size;
  for (const length of shape) {
    bytes *= length;
    if (!Number.isSafeInteger(bytes)) return null;
  }
  return bytes;
}

/** Checks that the tensors, sorted by offset, cover the data from 0 to its end without gaps. */
function checkLayout(file: string, entries: readonly TensorEntry[], dataSize: number): void {
  let covered = 0;
  let before = '';
  for (const { name, begin, end } of entries) {
    const quoted = JSON.stringify(name);
    if (begin < covered) {
      throw checkpointFault(
        file,
        `tensors ${before} and ${quoted} overlap at data offset ${begin}`,
      );
    }
    if (begin > covered) {
      throw checkpointFault(
        file,
        `hole in the data: no tensor covers the offsets ${covered} to ${begin}, before ${quoted}`,
      );
    }
    covered = end;
    before = quoted;
  }
  if (covered > dataSize) {
    throw checkpointFault(
      file,
      `truncated: the tensors need ${covered} bytes of data, the file has ${dataSize} ` +
        `(tensor ${before} ends past the end of the file)`,
    );
  }
  if (covered < dataSize) {
    throw checkpointFault(
      file,
      `${dataSize - covered} bytes after the last tensor: the tensors end at data offset ` +
        `${covered}, the file at ${dataSize}`,
    );
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The properties of a tensor that the header needs. */
export interface TensorShape {
  readonly name: string;
  readonly dtype: NativeDType;
  readonly shape: readonly number[];
}

/**
 * Returns the bytes before the data: length and JSON, padded with spaces so that the data starts at
 * a multiple of 8 (readers may map the file and use the elements in place).
 *
 * @param tensors in the order in which their data will follow
 * @throws RangeError if {@link readHeaderLength} would refuse the header
 */
export function buildHeader(
  tensors: readonly TensorShape[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const header = new Map<string, unknown>();
  if (Object.keys(metadata).length > 0) header.set('__metadata__', metadata);
  let offset = 0;
  for (const { name, dtype, shape } of tensors) {
    const format = formatDType(dtype);
    const bytes = byteLength(shape, itemSize(format) ?? 0) ?? 0;
    header.set(name, { dtype: format, shape, data_offsets: [offset, offset + bytes] });
    offset += bytes;
  }
  // Not JSON.stringify of an object, which would reorder names that look like integers.
  const json = `{${[...header].map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`;
  const text = new TextEncoder().encode(json);
  const padded = Math.ceil(text.byteLength / 8) * 8;
  if (padded > headerLimit) {
    throw new RangeError(
      `writeSafetensors: names and metadata need a header of ${padded} bytes, ` +
        `the format's limit is ${headerLimit}; store large texts in a separate file`,
    );
  }
  const bytes = new Uint8Array(lengthBytes + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(text, lengthBytes);
  return bytes;
}
