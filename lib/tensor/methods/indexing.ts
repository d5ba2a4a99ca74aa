/** Methods of Tensor that pick elements by tensors of positions or truth values. */
import { describe } from '../../runtime/options.js';
import {
  checkBroadcast,
  checkDimRange,
  checkIndex,
  checkMask,
  checkOperand,
  checkTensor,
  explained,
  formatShape,
  type Scalar,
} from '../check.js';
import { callTensor } from '../dispatch.js';
import { Tensor } from '../tensor.js';
import { where } from '../where.js';
import { ReductionMethods } from './reduction.js';

/** @throws TypeError unless `index` is an int64 or int32 tensor */
function checkPositions(owner: string, index: unknown): asserts index is Tensor {
  checkTensor(owner, 'index', index);
  if (index.dtype !== 'int64' && index.dtype !== 'int32') {
    throw new TypeError(
      `${owner}: index must be an int64 tensor, got ${index.dtype}; convert it with long()`,
    );
  }
}

export abstract class IndexingMethods extends ReductionMethods {
  /** `value` (a number or a 0-dim tensor) where the bool `mask` is true, else this tensor. */
  maskedFill(this: Tensor, mask: Tensor, value: Tensor | Scalar): Tensor {
    checkMask('maskedFill', 'mask', mask);
    checkOperand('maskedFill', 'value', value);
    const op = value instanceof Tensor ? 'aten::masked_fill.Tensor' : 'aten::masked_fill.Scalar';
    return explained(
      () => callTensor(op, this, mask, value),
      () => {
        checkBroadcast('maskedFill', ['the tensor', 'mask'], this.shape, mask.shape);
        if (value instanceof Tensor && value.ndim > 0) {
          throw new RangeError(
            `maskedFill: value must be a number or a 0-dim tensor, got ${formatShape(value.shape)}`,
          );
        }
      },
    );
  }

  /** This tensor where the bool `condition` is true, else `other`. */
  where(this: Tensor, condition: Tensor, other: Tensor | Scalar): Tensor {
    return where(condition, this, other);
  }

  /** `out[i][j] = this[index[i][j]][j]` for dim 0, and so on: one element for each of `index`. */
  gather(this: Tensor, dim: number, index: Tensor): Tensor {
    checkIndex('gather', 'dim', dim);
    checkPositions('gather', index);
    return explained(
      () => callTensor('aten::gather', this, dim, index),
      () => {
        checkDimRange('gather', 'dim', dim, this.ndim);
        const [shape, wanted] = [this.shape, index.shape];
        const axis = dim < 0 ? dim + shape.length : dim;
        const fits =
          shape.length === wanted.length &&
          wanted.every((size, at) => at === axis || size <= (shape[at] ?? 0));
        if (!fits) {
          throw new RangeError(
            `gather: index ${formatShape(wanted)} must have as many dimensions as the tensor ` +
              `${formatShape(shape)} and be no larger in any but dimension ${dim}`,
          );
        }
      },
    );
  }

  /** The slices of dimension `dim` at the positions in the 1-dim `index`, in that order. */
  indexSelect(this: Tensor, dim: number, index: Tensor): Tensor {
    checkIndex('indexSelect', 'dim', dim);
    checkPositions('indexSelect', index);
    return explained(
      () => callTensor('aten::index_select', this, dim, index),
      () => {
        checkDimRange('indexSelect', 'dim', dim, this.ndim);
        if (index.ndim > 1) {
          throw new RangeError(
            `indexSelect: index must have 1 dimension, got ${formatShape(index.shape)}`,
          );
        }
      },
    );
  }

  /**
   * Indexing by tensors, as `x[i, :, j]` in Python: `x.index(i, null, j)`. int64 tensors pick
   * positions, bool tensors pick where they are true, null takes a whole dimension.
   */
  index(this: Tensor, ...indices: (Tensor | null)[]): Tensor {
    if (indices.length === 0) throw new TypeError('index: give at least one Tensor or null');
    indices.forEach((index, at) => {
      if (index === null) return;
      if (!(index instanceof Tensor)) {
        throw new TypeError(
          `index: indices[${at}] must be a Tensor or null, got ${describe(index)}; ` +
            'use select or slice for numbers',
        );
      }
      const { dtype } = index;
      if (dtype !== 'int64' && dtype !== 'int32' && dtype !== 'bool') {
        throw new TypeError(`index: indices[${at}] must be int64 or bool, got ${dtype}`);
      }
    });
    return explained(
      () => callTensor('aten::index.Tensor', this, indices),
      () => {
        if (indices.length > this.ndim) {
          throw new RangeError(
            `index: ${indices.length} indices for a tensor of shape ${formatShape(this.shape)}`,
          );
        }
      },
    );
  }

  /** Elements where the bool `mask` (broadcast) is true, as one dimension. */
  maskedSelect(this: Tensor, mask: Tensor): Tensor {
    checkMask('maskedSelect', 'mask', mask);
    return explained(
      () => callTensor('aten::masked_select', this, mask),
      () => checkBroadcast('maskedSelect', ['the tensor', 'mask'], this.shape, mask.shape),
    );
  }
}
