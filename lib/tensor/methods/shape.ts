/** Methods of Tensor that change its shape. Most share memory with the tensor. */
import {
  checkBroadcastTo,
  checkDimRange,
  checkDims,
  checkIndex,
  checkShape,
  elementCount,
  explained,
  formatShape,
  sizeAt,
} from '../check.js';
import { checkInteger } from '../../runtime/arguments.js';
import { callTensor, callTensors } from '../dispatch.js';
import type { Tensor } from '../tensor.js';

/** Sizes as separate arguments or as an array: `x.view(2, -1)` and `x.view([2, -1])`. */
export type Sizes = number[] | [sizes: readonly number[]];

/** The sizes in a rest parameter as an array. @throws TypeError, RangeError */
export function sizesOf(owner: string, sizes: Sizes, minimum: -1 | 0): readonly number[] {
  const first = sizes[0];
  return checkShape(owner, Array.isArray(first) ? first : sizes, minimum);
}

/** Throws if the elements cannot be arranged as `shape`. */
function checkSameCount(owner: string, from: readonly number[], shape: readonly number[]): void {
  const open = shape.filter((size) => size === -1).length;
  const known = elementCount(shape.filter((size) => size !== -1));
  const count = elementCount(from);
  const fits = open === 0 ? known === count : open === 1 && known > 0 && count % known === 0;
  if (!fits) {
    throw new RangeError(
      `${owner}: ${formatShape(from)} has ${count} elements, which cannot have the shape ` +
        `${formatShape(shape)}${open > 1 ? '; only one size may be -1' : ''}`,
    );
  }
}

/**
 * Changing the shape. Each method throws TypeError for an argument of a wrong type, RangeError for
 * invalid sizes or dimensions, and TorchError for a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class ShapeMethods {
  /** The same elements in another shape, in row-major order; one size may be -1. Copies if needed. */
  reshape(this: Tensor, ...sizes: Sizes): Tensor {
    const shape = sizesOf('reshape', sizes, -1);
    return explained(
      () => callTensor('aten::reshape', this, shape),
      () => checkSameCount('reshape', this.shape, shape),
    );
  }

  /** Like {@link Tensor.reshape}, without copying. @throws RangeError if a copy is necessary */
  view(this: Tensor, ...sizes: Sizes): Tensor {
    const shape = sizesOf('view', sizes, -1);
    return explained(
      () => callTensor('aten::view', this, shape),
      () => {
        checkSameCount('view', this.shape, shape);
        throw new RangeError(
          `view: the memory of ${formatShape(this.shape)} (strides ${formatShape(this.strides)}) ` +
            `cannot be viewed as ${formatShape(shape)} without a copy; use reshape`,
        );
      },
    );
  }

  /** Flattens the dimensions `startDim` to `endDim` into one. Default: all. */
  flatten(this: Tensor, startDim = 0, endDim = -1): Tensor {
    checkIndex('flatten', 'startDim', startDim);
    checkIndex('flatten', 'endDim', endDim);
    return explained(
      () => callTensor('aten::flatten.using_ints', this, startDim, endDim),
      () => {
        const { ndim } = this;
        checkDimRange('flatten', 'startDim', startDim, ndim);
        checkDimRange('flatten', 'endDim', endDim, ndim);
        throw new RangeError(
          `flatten: startDim must not be after endDim, got ${startDim} and ${endDim}`,
        );
      },
    );
  }

  /** Swaps two dimensions. */
  transpose(this: Tensor, dim0: number, dim1: number): Tensor {
    checkIndex('transpose', 'dim0', dim0);
    checkIndex('transpose', 'dim1', dim1);
    return explained(
      () => callTensor('aten::transpose.int', this, dim0, dim1),
      () => {
        checkDimRange('transpose', 'dim0', dim0, this.ndim);
        checkDimRange('transpose', 'dim1', dim1, this.ndim);
      },
    );
  }

  /** `[R, C]` → `[C, R]`. @throws RangeError if there are more than 2 dimensions */
  t(this: Tensor): Tensor {
    return explained(
      () => callTensor('aten::t', this),
      () => {
        throw new RangeError(
          `t: needs at most 2 dimensions, got ${formatShape(this.shape)}; use transpose(a, b)`,
        );
      },
    );
  }

  /** Reorders the dimensions: `permute(0, 2, 1)`. */
  permute(this: Tensor, ...dims: Sizes): Tensor {
    const order = checkDims('permute', 'dims', Array.isArray(dims[0]) ? dims[0] : dims);
    return explained(
      () => callTensor('aten::permute', this, order),
      () => {
        const { ndim } = this;
        order.forEach((dim, index) => checkDimRange('permute', `dims[${index}]`, dim, ndim));
        throw new RangeError(
          `permute: dims must name each of the ${ndim} dimensions once, got ${formatShape(order)}`,
        );
      },
    );
  }

  /** Inserts a dimension of size 1 at `dim`. */
  unsqueeze(this: Tensor, dim: number): Tensor {
    checkIndex('unsqueeze', 'dim', dim);
    return explained(
      () => callTensor('aten::unsqueeze', this, dim),
      () => checkDimRange('unsqueeze', 'dim', dim, this.ndim + 1),
    );
  }

  /** Removes dimension `dim` if its size is 1; without `dim`, all dimensions of size 1. */
  squeeze(this: Tensor, dim?: number): Tensor {
    if (dim === undefined) return callTensor('aten::squeeze', this);
    checkIndex('squeeze', 'dim', dim);
    return explained(
      () => callTensor('aten::squeeze.dim', this, dim),
      () => checkDimRange('squeeze', 'dim', dim, this.ndim),
    );
  }

  /** Expands dimensions of size 1 without copying; -1 keeps a size. */
  expand(this: Tensor, ...sizes: Sizes): Tensor {
    const shape = sizesOf('expand', sizes, -1);
    return explained(
      () => callTensor('aten::expand', this, shape),
      () => {
        const from = this.shape;
        const to = shape.map((size, dim) =>
          size === -1 ? (from[dim - shape.length + from.length] ?? -1) : size,
        );
        checkBroadcastTo('expand', 'the tensor', from, to);
      },
    );
  }

  /** A row-major contiguous tensor; shares memory if this tensor is contiguous. */
  contiguous(this: Tensor): Tensor {
    return callTensor('aten::contiguous', this);
  }

  /**
   * Splits into parts of `size` along `dim`, of which the last may be smaller, or into parts of the
   * listed sizes.
   *
   * @throws RangeError if the listed sizes do not add up to the size of the dimension
   */
  split(this: Tensor, size: number | readonly number[], dim = 0): Tensor[] {
    checkIndex('split', 'dim', dim);
    if (typeof size === 'number') checkInteger('split', 'size', size, 1);
    else checkShape('split', size);
    const op = typeof size === 'number' ? 'aten::split.Tensor' : 'aten::split_with_sizes';
    return explained(
      () => callTensors(op, this, size, dim),
      () => {
        checkDimRange('split', 'dim', dim, this.ndim);
        if (typeof size !== 'number') {
          throw new RangeError(
            `split: sizes ${formatShape(size)} must add up to the size of dimension ${dim}, ` +
              `which is ${sizeAt(this.shape, dim)}`,
          );
        }
      },
    );
  }

  /** Splits into at most `count` equal parts along `dim`; the last one may be smaller. */
  chunk(this: Tensor, count: number, dim = 0): Tensor[] {
    checkInteger('chunk', 'count', count, 1);
    checkIndex('chunk', 'dim', dim);
    return explained(
      () => callTensors('aten::chunk', this, count, dim),
      () => checkDimRange('chunk', 'dim', dim, this.ndim),
    );
  }

  /** Selects `index` in dimension `dim`, which is removed. Negative indices count from the end. */
  select(this: Tensor, dim: number, index: number): Tensor {
    checkIndex('select', 'dim', dim);
    checkIndex('select', 'index', index);
    return explained(
      () => callTensor('aten::select.int', this, dim, index),
      () => {
        const { shape } = this;
        if (shape.length === 0) throw new RangeError('select: a 0-dim tensor has no dimension');
        checkDimRange('select', 'dim', dim, shape.length);
        const size = sizeAt(shape, dim);
        throw new RangeError(
          `select: index ${index} is out of range for dimension ${dim}, which has size ${size}`,
        );
      },
    );
  }

  /** `length` indices of dimension `dim`, beginning at `start`. */
  narrow(this: Tensor, dim: number, start: number, length: number): Tensor {
    checkIndex('narrow', 'dim', dim);
    checkIndex('narrow', 'start', start);
    checkInteger('narrow', 'length', length, 0);
    return explained(
      () => callTensor('aten::narrow', this, dim, start, length),
      () => {
        const { shape } = this;
        checkDimRange('narrow', 'dim', dim, shape.length);
        throw new RangeError(
          `narrow: start ${start} with length ${length} is out of range for dimension ${dim}, ` +
            `which has size ${sizeAt(shape, dim)}`,
        );
      },
    );
  }

  /**
   * Every `step`-th index of dimension `dim` from `start` up to, but not including, `end`.
   * Negative positions count from the end; positions out of range are clamped, as in Python.
   */
  slice(this: Tensor, dim: number, start = 0, end: number | null = null, step = 1): Tensor {
    checkIndex('slice', 'dim', dim);
    checkIndex('slice', 'start', start);
    if (end !== null) checkIndex('slice', 'end', end);
    checkInteger('slice', 'step', step, 1);
    return explained(
      () => callTensor('aten::slice.Tensor', this, dim, start, end, step),
      () => checkDimRange('slice', 'dim', dim, this.ndim),
    );
  }
}
