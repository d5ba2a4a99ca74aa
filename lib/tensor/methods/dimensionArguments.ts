/** What the methods along dimensions share: reading `dim` and `keepdim`, and naming faults. */
import { checkBoolean, checkOptions, orDefault } from '../../runtime/arguments.js';
import { checkDimRange, checkDims, checkIndex, explained, formatShape } from '../check.js';
import { isFloatingPoint, type DType } from '../dtype.js';
import type { Tensor } from '../tensor.js';

/** Options of all methods that reduce dimensions. */
export interface KeepdimOptions {
  /** Keeps the reduced dimensions with size 1. Default false. */
  keepdim?: boolean;
}

/** The values along a dimension and where they are (int64). */
export interface ValuesAndIndices {
  /** The values, of the tensor's dtype. */
  values: Tensor;
  /** Where along the dimension each was, int64, the same shape. */
  indices: Tensor;
}

/** One dimension, several, or null for all. */
export type Dims = number | readonly number[] | null;

/** The dimensions as an array; null for all. @throws TypeError, RangeError */
export function dimsOf(owner: string, dims: Dims | undefined): readonly number[] | null {
  return dims === undefined || dims === null ? null : checkDims(owner, 'dim', dims);
}

/** @throws RangeError naming the dimension that the tensor does not have, or that comes twice */
export function checkDimsRange(owner: string, dims: readonly number[] | null, ndim: number): void {
  if (dims === null) return;
  for (const dim of dims) checkDimRange(owner, 'dim', dim, ndim);
  if (new Set(dims.map((dim) => (dim < 0 ? dim + ndim : dim))).size < dims.length) {
    throw new RangeError(`${owner}: dim must name each dimension once, got ${formatShape(dims)}`);
  }
}

/** `keepdim` of options that may have `more` keys. @throws TypeError for others */
export function keepdimOf(
  owner: string,
  options: KeepdimOptions,
  more: readonly string[] = [],
): boolean {
  checkOptions(owner, options, ['keepdim', ...more]);
  return checkBoolean(owner, 'keepdim', orDefault(options.keepdim, false));
}

/** @throws TypeError when `keepdim` is asked for without a dimension to keep */
export function checkKeepdimHasDim(owner: string, dim: number | undefined, keepdim: boolean): void {
  if (dim === undefined && keepdim) {
    throw new TypeError(`${owner}: keepdim needs a dim; without one the result has no dimensions`);
  }
}

/** @throws TypeError when the elements are integers or bools */
export function checkFloating(owner: string, dtype: DType): void {
  if (!isFloatingPoint(dtype)) {
    throw new TypeError(
      `${owner}: needs a floating tensor, got ${dtype}; convert it: to({ dtype: 'float32' })`,
    );
  }
}

/** @throws RangeError for a tensor without elements, of which there is no `what` */
export function checkNotEmpty(owner: string, self: Tensor, what = owner): void {
  if (self.numel === 0) throw new RangeError(`${owner}: a tensor without elements has no ${what}`);
}

/** Runs an op along one dimension; a dimension out of range is named. */
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

/** A result pair of libtorch's under its names. */
export function valuesAndIndices([values, indices]: Tensor[]): ValuesAndIndices {
  return { values, indices } as ValuesAndIndices;
}
