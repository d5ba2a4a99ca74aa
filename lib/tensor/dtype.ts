/**
 * Element types: their names, sizes and the JS typed arrays that hold them.
 * Type promotion is done by libtorch and not reimplemented here.
 */
import { describe } from '../runtime/arguments.js';
import type { NativeDType } from './native.js';

/** The element type of a tensor, by its PyTorch name. */
export type DType = NativeDType;

/** The typed arrays that {@link Tensor.data} returns. */
export type TensorData =
  Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array;

/** The typed arrays that {@link tensor} accepts. */
export type TensorSource = TensorData | Uint8ClampedArray;

interface DTypeFacts {
  /** Bytes of one element. */
  readonly bytes: number;
  readonly kind: 'floating' | 'integer' | 'bool';
  /** Smallest and largest value of the integer types, inclusive. */
  readonly range?: readonly [min: bigint, max: bigint];
}

const facts: Readonly<Record<DType, DTypeFacts>> = {
  float32: { bytes: 4, kind: 'floating' },
  float64: { bytes: 8, kind: 'floating' },
  float16: { bytes: 2, kind: 'floating' },
  bfloat16: { bytes: 2, kind: 'floating' },
  int8: { bytes: 1, kind: 'integer', range: [-(2n ** 7n), 2n ** 7n - 1n] },
  int16: { bytes: 2, kind: 'integer', range: [-(2n ** 15n), 2n ** 15n - 1n] },
  int32: { bytes: 4, kind: 'integer', range: [-(2n ** 31n), 2n ** 31n - 1n] },
  int64: { bytes: 8, kind: 'integer', range: [-(2n ** 63n), 2n ** 63n - 1n] },
  uint8: { bytes: 1, kind: 'integer', range: [0n, 255n] },
  bool: { bytes: 1, kind: 'bool' },
};

/** All supported element types. */
export const dtypes = Object.keys(facts) as readonly DType[];

/** Whether `value` is the name of an element type. */
export function isDType(value: unknown): value is DType {
  return typeof value === 'string' && Object.hasOwn(facts, value);
}

/**
 * Checks the name of an element type; returns it.
 *
 * @throws TypeError that lists the valid names
 */
export function checkDType(owner: string, name: string, value: unknown): DType {
  if (isDType(value)) return value;
  const hint =
    typeof value === 'string' && isDType(value.replace(/^torch\./, ''))
      ? ` (write '${value.replace(/^torch\./, '')}')`
      : '';
  throw new TypeError(
    `${owner}: ${name} must be one of ${dtypes.join(', ')}, got ${describe(value)}${hint}`,
  );
}

/** Bytes of one element. @throws TypeError if `dtype` is not a dtype */
export function byteSize(dtype: DType): number {
  return facts[checkDType('byteSize', 'dtype', dtype)].bytes;
}

/**
 * Whether this is a floating-point type: float16, bfloat16, float32 or float64.
 *
 * @throws TypeError if `dtype` is not a dtype
 */
export function isFloatingPoint(dtype: DType): boolean {
  return facts[checkDType('isFloatingPoint', 'dtype', dtype)].kind === 'floating';
}

/** Smallest and largest value of an integer type, inclusive; undefined for other types. @internal */
export function integerRange(dtype: DType): readonly [min: bigint, max: bigint] | undefined {
  return facts[dtype].range;
}

/**
 * The element type of a typed array: `Float32Array` → float32, `BigInt64Array` → int64,
 * `Uint8Array` (also a Node.js Buffer) → uint8.
 *
 * @throws TypeError for views without a matching element type (Uint16Array, DataView, …)
 */
export function dtypeOfTypedArray(owner: string, view: ArrayBufferView): DType {
  if (view instanceof Float32Array) return 'float32';
  if (view instanceof Float64Array) return 'float64';
  if (view instanceof Int8Array) return 'int8';
  if (view instanceof Int16Array) return 'int16';
  if (view instanceof Int32Array) return 'int32';
  if (view instanceof BigInt64Array) return 'int64';
  if (view instanceof Uint8Array || view instanceof Uint8ClampedArray) return 'uint8';
  throw new TypeError(
    `${owner}: data is ${describe(view)}, which has no matching dtype; ` +
      'copy it into a Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, ' +
      'BigInt64Array or Uint8Array, or use fromBytes',
  );
}

/**
 * A typed array over a row-major copy of a tensor's elements; bools are bytes 0 and 1.
 *
 * @throws TypeError for float16 and bfloat16, which have no typed array: convert them first
 * @internal
 */
export function typedArrayOver(buffer: ArrayBuffer, dtype: DType): TensorData {
  switch (dtype) {
    case 'float32':
      return new Float32Array(buffer);
    case 'float64':
      return new Float64Array(buffer);
    case 'int8':
      return new Int8Array(buffer);
    case 'int16':
      return new Int16Array(buffer);
    case 'int32':
      return new Int32Array(buffer);
    case 'int64':
      return new BigInt64Array(buffer);
    case 'uint8':
    case 'bool':
      return new Uint8Array(buffer);
    default:
      throw new TypeError(
        `there is no typed array for ${String(dtype)}; convert it with to({dtype})`,
      );
  }
}
