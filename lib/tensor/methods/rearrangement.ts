/** More methods of Tensor that rearrange dimensions and elements. */
import { checkInteger, checkOptions } from '../../runtime/arguments.js';
import {
  checkBroadcastTo,
  checkDimRange,
  checkDims,
  checkIndex,
  checkShape,
  checkTensor,
  elementCount,
  explained,
  formatShape,
  sizeAt,
} from '../check.js';
import { callTensor, callTensors } from '../dispatch.js';
import { isFloatingPoint } from '../dtype.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';
import { alongDim } from './dimensionArguments.js';
import { sizesOf, type Sizes } from './shape.js';

/** Options of {@link Tensor.diagonal} and {@link Tensor.diagEmbed}. */
export interface DiagonalOptions {
  /** 0 (default): the main diagonal; above it if positive, below if negative. */
  offset?: number;
  /** First dimension of the matrices. Default 0 (`diagonal`) or -2 (`diagEmbed`). */
  dim1?: number;
  /** Second dimension of the matrices. Default 1 (`diagonal`) or -1 (`diagEmbed`). */
  dim2?: number;
}

function diagonalLike(
  self: Tensor,
  [name, op]: [string, string],
  options: DiagonalOptions,
  [first, second]: [number, number],
  ndim: number,
): Tensor {
  checkOptions(name, options, ['offset', 'dim1', 'dim2']);
  const { offset = 0, dim1 = first, dim2 = second } = options;
  for (const [key, value] of Object.entries({ offset, dim1, dim2 })) checkIndex(name, key, value);
  return explained(
    () => callTensor(op, self, offset, dim1, dim2),
    () => {
      checkDimRange(name, 'dim1', dim1, ndim);
      checkDimRange(name, 'dim2', dim2, ndim);
      throw new RangeError(`${name}: dim1 and dim2 must differ, got ${dim1} and ${dim2}`);
    },
  );
}

function triangle(self: Tensor, name: 'tril' | 'triu', diagonal: number): Tensor {
  checkIndex(name, 'diagonal', diagonal);
  return explained(
    () => callTensor(`aten::${name}`, self, diagonal),
    () => {
      throw new RangeError(`${name}: needs matrices […, R, C], got ${formatShape(self.shape)}`);
    },
  );
}

/** @throws RangeError unless all are dimensions of the tensor and none occurs twice */
function checkEachOnce(owner: string, name: string, dims: readonly number[], ndim: number): void {
  dims.forEach((dim, at) => checkDimRange(owner, `${name}[${at}]`, dim, ndim));
  if (new Set(dims.map((dim) => (dim < 0 ? dim + ndim : dim))).size < dims.length) {
    throw new RangeError(
      `${owner}: ${name} must name each dimension once, got ${formatShape(dims)}`,
    );
  }
}

/**
 * Rearranging dimensions and elements. Each method throws TypeError for an argument of a wrong type
 * or dtype, RangeError for invalid dimensions or sizes, and TorchError for a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class RearrangementMethods {
  /** Moves dimensions to other positions; the rest keep their order. */
  movedim(
    this: Tensor,
    source: number | readonly number[],
    destination: number | readonly number[],
  ): Tensor {
    const from = checkDims('movedim', 'source', source);
    const to = checkDims('movedim', 'destination', destination);
    return explained(
      () => callTensor('aten::movedim.intlist', this, from, to),
      () => {
        checkEachOnce('movedim', 'source', from, this.ndim);
        checkEachOnce('movedim', 'destination', to, this.ndim);
        throw new RangeError(
          `movedim: needs as many destinations as sources, got ${formatShape(from)} and ${formatShape(to)}`,
        );
      },
    );
  }

  /** Swaps two dimensions; alias of {@link Tensor.transpose}. */
  swapaxes(this: Tensor, axis0: number, axis1: number): Tensor {
    return this.transpose(axis0, axis1);
  }

  /** Splits dimension `dim` into several with the given sizes; one may be -1. */
  unflatten(this: Tensor, dim: number, sizes: readonly number[]): Tensor {
    const shape = checkShape('unflatten', sizes, -1);
    return alongDim(
      this,
      'unflatten',
      dim,
      () => callTensor('aten::unflatten.int', this, dim, shape),
      () => {
        throw new RangeError(
          `unflatten: dimension ${dim} of size ${sizeAt(this.shape, dim)} cannot have the sizes ` +
            formatShape(shape),
        );
      },
    );
  }

  /** All elements in one dimension; copies if necessary. */
  ravel(this: Tensor): Tensor {
    return callTensor('aten::ravel', this);
  }

  /** Reshapes to the shape of `other`. See {@link Tensor.reshape}. */
  reshapeAs(this: Tensor, other: Tensor): Tensor {
    checkTensor('reshapeAs', 'other', other);
    return this.reshape(other.shape);
  }

  /** Reshapes to the shape of `other` without copying. See {@link Tensor.view}. */
  viewAs(this: Tensor, other: Tensor): Tensor {
    checkTensor('viewAs', 'other', other);
    return this.view(other.shape);
  }

  /** Broadcasts to the shape of `other` without copying. See {@link Tensor.expand}. */
  expandAs(this: Tensor, other: Tensor): Tensor {
    checkTensor('expandAs', 'other', other);
    return this.expand(other.shape);
  }

  /** Broadcasts to a shape without copying. See {@link Tensor.expand}. */
  broadcastTo(this: Tensor, ...sizes: Sizes): Tensor {
    const shape = sizesOf('broadcastTo', sizes, 0);
    return explained(
      () => callTensor('aten::broadcast_to', this, shape),
      () => checkBroadcastTo('broadcastTo', 'the tensor', this.shape, shape),
    );
  }

  /**
   * Repeats the tensor along each dimension; the last of `counts` is for the last dimension.
   * More counts than dimensions add leading dimensions.
   */
  repeat(this: Tensor, ...counts: Sizes): Tensor {
    const repeats = sizesOf('repeat', counts, 0);
    return explained(
      () => callTensor('aten::repeat', this, repeats),
      () => {
        throw new RangeError(
          `repeat: needs at least one count for each of the ${this.ndim} dimensions, ` +
            `got ${formatShape(repeats)}; tile accepts fewer`,
        );
      },
    );
  }

  /** Like {@link Tensor.repeat}, but accepts fewer counts, which are for the last dimensions. */
  tile(this: Tensor, ...counts: Sizes): Tensor {
    return callTensor('aten::tile', this, sizesOf('tile', counts, 0));
  }

  /**
   * Repeats each slice of dimension `dim`, or without `dim` each element of the flattened tensor,
   * `repeats` times in a row.
   *
   * @param repeats a count, or an int64 tensor `[size of dim]` of counts
   */
  repeatInterleave(this: Tensor, repeats: number | Tensor, dim?: number): Tensor {
    if (dim !== undefined) checkIndex('repeatInterleave', 'dim', dim);
    const many = isTensor(repeats);
    if (!many) checkInteger('repeatInterleave', 'repeats', repeats, 0);
    const op = `aten::repeat_interleave.self_${many ? 'Tensor' : 'int'}`;
    return explained(
      () => callTensor(op, this, repeats, dim ?? null),
      () => {
        if (dim !== undefined) checkDimRange('repeatInterleave', 'dim', dim, this.ndim);
        const size = dim === undefined ? elementCount(this.shape) : sizeAt(this.shape, dim);
        if (many) {
          throw new RangeError(
            `repeatInterleave: repeats must be ${size} non-negative int64 counts, got a ` +
              `Tensor ${formatShape(repeats.shape)} of ${repeats.dtype}`,
          );
        }
      },
    );
  }

  /** Reverses the elements along the given dimensions, with a copy. */
  flip(this: Tensor, ...dims: Sizes): Tensor {
    const order = checkDims('flip', 'dims', Array.isArray(dims[0]) ? dims[0] : dims);
    return explained(
      () => callTensor('aten::flip', this, order),
      () => checkEachOnce('flip', 'dims', order, this.ndim),
    );
  }

  /**
   * Shifts elements by `shifts` along `dims`, wrapping around at the ends. Without `dims`, shifts the
   * flattened tensor.
   */
  roll(
    this: Tensor,
    shifts: number | readonly number[],
    dims: number | readonly number[] = [],
  ): Tensor {
    const by = checkDims('roll', 'shifts', shifts);
    const along = checkDims('roll', 'dims', dims);
    return explained(
      () => callTensor('aten::roll', this, by, along),
      () => {
        checkEachOnce('roll', 'dims', along, this.ndim);
        throw new RangeError(
          `roll: needs as many shifts as dims, got ${formatShape(by)} and ${formatShape(along)}`,
        );
      },
    );
  }

  /** Rotates by 90° from the first of `dims` towards the second. Default: once, dimensions 0 and 1. */
  rot90(this: Tensor, turns = 1, dims: readonly [number, number] = [0, 1]): Tensor {
    checkIndex('rot90', 'turns', turns);
    const plane = checkDims('rot90', 'dims', dims);
    return explained(
      () => callTensor('aten::rot90', this, turns, plane),
      () => {
        checkEachOnce('rot90', 'dims', plane, this.ndim);
        throw new RangeError(`rot90: dims must be two dimensions, got ${formatShape(plane)}`);
      },
    );
  }

  /** The lower triangle of matrices `[…, R, C]`, up to `diagonal` above the main one; the rest is 0. */
  tril(this: Tensor, diagonal = 0): Tensor {
    return triangle(this, 'tril', diagonal);
  }

  /** The upper triangle of matrices `[…, R, C]`, from `diagonal` above the main one; the rest is 0. */
  triu(this: Tensor, diagonal = 0): Tensor {
    return triangle(this, 'triu', diagonal);
  }

  /** The diagonals of matrices as a new last dimension, sharing memory. */
  diagonal(this: Tensor, options: DiagonalOptions = {}): Tensor {
    return diagonalLike(this, ['diagonal', 'aten::diagonal'], options, [0, 1], this.ndim);
  }

  /** Matrices with the last dimension as diagonal and 0 elsewhere: `[…, N]` → `[…, N, N]`. */
  diagEmbed(this: Tensor, options: DiagonalOptions = {}): Tensor {
    return diagonalLike(this, ['diagEmbed', 'aten::diag_embed'], options, [-2, -1], this.ndim + 1);
  }

  /** Sum of the diagonal of a matrix. */
  trace(this: Tensor): Tensor {
    return explained(
      () => callTensor('aten::trace', this),
      () => {
        throw new RangeError(`trace: needs a matrix [R, C], got ${formatShape(this.shape)}`);
      },
    );
  }

  /** The slices along dimension `dim`, which is removed. */
  unbind(this: Tensor, dim = 0): Tensor[] {
    return alongDim(
      this,
      'unbind',
      dim,
      () => callTensors('aten::unbind.int', this, dim),
      () => {
        throw new RangeError('unbind: a 0-dim tensor has no dimension to unbind');
      },
    );
  }

  /**
   * Windows of `size` elements at every `step` indices of dimension `dim`, which becomes the number of
   * windows; a new last dimension has the elements of each window. Shares memory.
   */
  unfold(this: Tensor, dim: number, size: number, step: number): Tensor {
    checkInteger('unfold', 'size', size, 0);
    checkInteger('unfold', 'step', step, 1);
    return alongDim(
      this,
      'unfold',
      dim,
      () => callTensor('aten::unfold', this, dim, size, step),
      () => {
        throw new RangeError(
          `unfold: size ${size} is larger than dimension ${dim}, which has size ` +
            `${sizeAt(this.shape, dim)}`,
        );
      },
    );
  }

  /**
   * One-hot encoding of class indices: `[…]`, int64 → `[…, numClasses]`.
   *
   * @param numClasses default: the largest element + 1
   */
  oneHot(this: Tensor, numClasses?: number): Tensor {
    if (numClasses !== undefined) checkInteger('oneHot', 'numClasses', numClasses, 1);
    if (this.dtype !== 'int64') {
      const fix = isFloatingPoint(this.dtype) ? '; are these class numbers?' : '';
      throw new TypeError(
        `oneHot: needs an int64 tensor, got ${this.dtype}; convert it with long()${fix}`,
      );
    }
    return callTensor('aten::one_hot', this, numClasses ?? -1);
  }

  /**
   * The slices of the first dimension: `for (const row of x)`, `const [a, b] = x`, `[...x]`. They
   * share memory with the tensor; {@link Tensor.toArray} is faster for plain numbers.
   *
   * @throws TypeError if the tensor has no dimensions
   */
  [Symbol.iterator](this: Tensor): IterableIterator<Tensor> {
    if (this.ndim === 0) {
      throw new TypeError('a 0-dim tensor cannot be iterated; item() returns its number');
    }
    return this.unbind(0)[Symbol.iterator]();
  }
}
