/**
 * Argument checks of the typed API. Types are checked before the native call. Shapes are checked by
 * libtorch, which rejects wrong ones safely; only then {@link explained} looks for an error that
 * names the parameter, so successful calls have no extra cost.
 */
import { TorchError } from '../runtime/errors.js';
import { checkInteger, describe } from '../runtime/arguments.js';
import { FloatScalar } from './dispatch.js';
import { isFloatingPoint, type DType } from './dtype.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/**
 * A single number as an operand. Integer-valued numbers and bigints are integers, so that
 * `ints.mul(2)` stays an integer tensor; `float(2)` forces a floating-point number.
 */
export type Scalar = number | bigint | boolean | FloatScalar;

/** Formats a shape for messages: `[2, 3]`. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`;
}

/** @throws TypeError unless `value` is a Tensor */
export function checkTensor(owner: string, name: string, value: unknown): asserts value is Tensor {
  if (!isTensor(value)) {
    throw new TypeError(
      `${owner}: ${name} must be a Tensor, got ${describe(value)}; create one with tensor(…)`,
    );
  }
}

/** @throws TypeError unless `value` is a non-empty array of Tensors */
export function checkTensors(owner: string, name: string, value: unknown): readonly Tensor[] {
  if (!Array.isArray(value)) {
    throw new TypeError(`${owner}: ${name} must be an array of Tensors, got ${describe(value)}`);
  }
  if (value.length === 0) throw new RangeError(`${owner}: ${name} must not be empty`);
  // A copy, in which holes are undefined and rejected, and which cannot change after the check.
  return Array.from(value, (item: unknown, index) => {
    checkTensor(owner, `${name}[${index}]`, item);
    return item;
  });
}

/** @throws TypeError unless `value` is a number, bigint, boolean or `float(x)` */
export function checkScalar(owner: string, name: string, value: unknown): asserts value is Scalar {
  const kind = typeof value;
  if (kind === 'number' || kind === 'boolean' || value instanceof FloatScalar) return;
  if (kind === 'bigint') {
    checkInt64(owner, name, value as bigint);
    return;
  }
  throw new TypeError(
    `${owner}: ${name} must be a number, a bigint, a boolean or float(x), got ${describe(value)}`,
  );
}

/** @throws TypeError unless `value` is a Tensor or a Scalar */
export function checkOperand(owner: string, name: string, value: unknown): void {
  if (isTensor(value)) return;
  const kind = typeof value;
  if (kind === 'object' || kind === 'string' || kind === 'undefined' || kind === 'function') {
    if (value instanceof FloatScalar) return;
    throw new TypeError(
      `${owner}: ${name} must be a Tensor or a number, got ${describe(value)}` +
        (Array.isArray(value) ? '; wrap it: tensor([…])' : ''),
    );
  }
  checkScalar(owner, name, value);
}

function checkInt64(owner: string, name: string, value: bigint): void {
  if (BigInt.asIntN(64, value) !== value) {
    throw new RangeError(`${owner}: ${name} must fit in 64 bits, got ${value}n`);
  }
}

/** Any integer, such as a dimension or an index. @throws TypeError, RangeError */
export function checkIndex(owner: string, name: string, value: unknown): number {
  return checkInteger(owner, name, value, Number.MIN_SAFE_INTEGER);
}

/** One dimension or several. @throws TypeError, RangeError */
export function checkDims(owner: string, name: string, value: unknown): readonly number[] {
  if (typeof value === 'number') return [checkIndex(owner, name, value)];
  if (!Array.isArray(value)) {
    throw new TypeError(
      `${owner}: ${name} must be an integer or an array of integers, got ${describe(value)}`,
    );
  }
  // Not `map`, which skips holes.
  return Array.from(value, (dim, index) => checkIndex(owner, `${name}[${index}]`, dim));
}

/**
 * Checks a shape, given as one number or an array; returns it as an array.
 *
 * @param minimum -1 if one size may be inferred, else 0
 * @throws TypeError, RangeError
 */
export function checkShape(owner: string, value: unknown, minimum: -1 | 0 = 0): readonly number[] {
  if (typeof value === 'number') return [checkInteger(owner, 'shape', value, minimum)];
  if (!Array.isArray(value)) {
    throw new TypeError(
      `${owner}: shape must be an array of integers like [2, 3], got ${describe(value)}`,
    );
  }
  const shape = Array.from(value, (size, dim) =>
    checkInteger(owner, `shape[${dim}]`, size, minimum),
  );
  if (!Number.isSafeInteger(shape.reduce((count, size) => count * Math.abs(size), 1))) {
    throw new RangeError(`${owner}: shape ${formatShape(shape)} has too many elements`);
  }
  return shape;
}

/** The number of elements of a shape; 1 for `[]`. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, size) => count * size, 1);
}

/** @throws RangeError unless `dim` is one of `ndim` dimensions, counted from the end if negative */
export function checkDimRange(owner: string, name: string, dim: number, ndim: number): void {
  // libtorch treats a 0-dim tensor as if it had one dimension.
  const count = Math.max(ndim, 1);
  if (dim < -count || dim >= count) {
    throw new RangeError(
      `${owner}: ${name} must be from ${-count} to ${count - 1} for a tensor with ` +
        `${ndim} dimension${ndim === 1 ? '' : 's'}, got ${dim}`,
    );
  }
}

/** The size of `dim` in `shape`; 1 for a 0-dim tensor. */
export function sizeAt(shape: readonly number[], dim: number): number {
  return shape.at(dim) ?? 1;
}

/** @throws RangeError unless the shapes are equal or 1 in each dimension, counted from the last */
export function checkBroadcast(
  owner: string,
  names: readonly [string, string],
  a: readonly number[],
  b: readonly number[],
): void {
  for (let back = 1; back <= Math.min(a.length, b.length); back++) {
    const [sizeA, sizeB] = [a.at(-back), b.at(-back)];
    if (sizeA !== sizeB && sizeA !== 1 && sizeB !== 1) {
      throw new RangeError(
        `${owner}: ${names[0]} ${formatShape(a)} and ${names[1]} ${formatShape(b)} cannot be ` +
          `broadcast: dimension -${back} has sizes ${sizeA} and ${sizeB}; ` +
          'sizes must be equal or 1, counted from the last dimension',
      );
    }
  }
}

/** @throws RangeError unless `from` can be broadcast to exactly `to` */
export function checkBroadcastTo(
  owner: string,
  name: string,
  from: readonly number[],
  to: readonly number[],
): void {
  const fits =
    from.length <= to.length &&
    from.every((size, dim) => size === 1 || size === to[to.length - from.length + dim]);
  if (!fits) {
    throw new RangeError(
      `${owner}: ${name} ${formatShape(from)} cannot be broadcast to the shape ${formatShape(to)}`,
    );
  }
}

/** @throws TypeError unless `mask` is a bool tensor */
export function checkMask(owner: string, name: string, mask: unknown): asserts mask is Tensor {
  checkTensor(owner, name, mask);
  if (mask.dtype !== 'bool') {
    throw new TypeError(
      `${owner}: ${name} must be a bool tensor, got ${mask.dtype}; compare first, as in ${name}.ne(0)`,
    );
  }
}

/** @throws TypeError if tensors of this dtype cannot require gradients */
export function checkCanRequireGrad(owner: string, dtype: DType): void {
  if (!isFloatingPoint(dtype)) {
    throw new TypeError(
      `${owner}: only floating-point tensors can require gradients, this one is ${dtype}; ` +
        `convert it: to({ dtype: 'float32' })`,
    );
  }
}

const otherCodes: ReadonlySet<string> = new Set([
  'ERR_CUDA_LOST',
  'ERR_CUDA_UNAVAILABLE',
  'ERR_DISPOSED',
  'ERR_OUT_OF_MEMORY',
]);

/**
 * Runs a native call. If libtorch rejects the arguments, `explain` looks for the cause and throws an
 * error that names the parameter; if it does not throw, libtorch's error is thrown.
 */
export function explained<T>(run: () => T, explain: () => void): T {
  try {
    return run();
  } catch (error) {
    const isArgumentFault = error instanceof TorchError && !otherCodes.has(error.code);
    if (isArgumentFault) explain();
    throw error;
  }
}
