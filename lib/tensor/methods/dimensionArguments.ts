/** Common code of methods along dimensions: checks of `dim` and `keepdim`. */
import { checkBoolean, checkOptions, orDefault } from '../../runtime/arguments.js';
import { checkDimRange, checkDims, checkIndex, explained, formatShape } from '../check.js';
import { isFloatingPoint, type DType } from '../dtype.js';
import type { Tensor } from '../tensor.js';

/** Options of all methods that reduce dimensions. */
export interface KeepdimOptions {
  /** Keep the reduced dimensions with size 1. Default false. */
  keepdim?: boolean;
}

/** Values along a dimension and their indices. */
export interface ValuesAndIndices {
  /** The values, with the dtype of the tensor. */
  values: Tensor;
  /** The index of each value along the dimension, int64, the same shape. */
  indices: Tensor;
}

/** One dimension, several, or null for all. */
export type Dims = number | readonly number[] | null;

/** The dimensions as an array; null for all. @throws TypeError, RangeError */
export function dimsOf(owner: string, dims: Dims | undefined): readonly number[] | null {
  return dims === undefined || dims === null ? null : checkDims(owner, 'dim', dims);
}

/** @throws RangeError if a dimension does not exist or occurs twice */
export function checkDimsRange(owner: string, dims: readonly number[] | null, ndim: number): void {
  if (dims === null) return;
  for (const dim of dims) checkDimRange(owner, 'dim', dim, ndim);
  if (new Set(dims.map((dim) => (dim < 0 ? dim + ndim : dim))).size < dims.length) {
    throw new RangeError(`${owner}: dim must name each dimension once, got ${formatShape(dims)}`);
  }
}

/** `keepdim` of options that may also have the keys `more`. @throws TypeError for unknown keys */
export function keepdimOf(
  owner: string,
  options: KeepdimOptions,
  more: readonly string[] = [],
): boolean {
  checkOptions(owner, options, ['keepdim', ...more]);
  return checkBoolean(owner, 'keepdim', orDefault(options.keepdim, false));
}

/** @throws TypeError if `keepdim` is true without a dimension to keep */
export function checkKeepdimHasDim(owner: string, dim: number | undefined, keepdim: boolean): void {
  if (dim === undefined && keepdim) {
    throw new TypeError(`${owner}: keepdim requires dim; without it the result has no dimensions`);
  }
}

/** @throws TypeError if the dtype is not floating-point */
export function checkFloating(owner: string, dtype: DType): void {
  if (!isFloatingPoint(dtype)) {
    throw new TypeError(
      `${owner}: needs a floating-point tensor, got ${dtype}; convert it: to({ dtype: 'float32' })`,
    );
  }
}

/** @throws RangeError if the tensor has no elements and so no `what` */
export function checkNotEmpty(owner: string, self: Tensor, what = owner): void {
  if (self.numel === 0) throw new RangeError(`${owner}: a tensor without elements has no ${what}`);
}

/** Runs an op along one dimension. @throws RangeError if it is out of range */
export function alongDim<Result>(
  self: Tensor,
  name: string,
  dim: number,
  run: () => Result,
  explain?: () => void,
): Result {
  checkIndex(name, 'dim', dim);
  return explained(run, () => {
    checkDimRange(name, 'dim', dim, self.ndim);
    explain?.();
  });
}

/** Names the two results of a libtorch op. */
export function valuesAndIndices([values, indices]: Tensor[]): ValuesAndIndices {
  return { values, indices } as ValuesAndIndices;
}
