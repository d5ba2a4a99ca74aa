/** Methods of Tensor that select elements by positions or masks. */
import { checkBoolean, checkOptions, describe } from '../../runtime/arguments.js';
import {
  checkBroadcast,
  checkBroadcastTo,
  checkDimRange,
  checkIndex,
  checkMask,
  checkOperand,
  checkTensor,
  explained,
  formatShape,
  type Scalar,
} from '../check.js';
import { call, callTensor } from '../dispatch.js';
import type { DType } from '../dtype.js';
import { checkGpuPositions } from '../gpuPositions.js';
import { indexedView, type Index } from '../pythonIndex.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';
import { where } from '../where.js';

/** Options of {@link Tensor.indexPut_}. */
export interface IndexPutOptions {
  /** Add to the elements instead of replacing them; repeated positions accumulate. Default false. */
  accumulate?: boolean;
}

/** @throws TypeError unless `index` is a tensor with one of the given integer dtypes */
export function checkPositions(
  owner: string,
  index: unknown,
  dtypes: readonly DType[] = ['int64', 'int32'],
): asserts index is Tensor {
  checkTensor(owner, 'index', index);
  if (!dtypes.includes(index.dtype)) {
    throw new TypeError(
      `${owner}: index must be an int64 tensor, got ${index.dtype}; convert it with long()`,
    );
  }
}

function checkSingle(owner: string, value: Tensor | Scalar): void {
  if (isTensor(value) && value.ndim > 0) {
    throw new RangeError(
      `${owner}: value must be a number or a 0-dim tensor, got ${formatShape(value.shape)}`,
    );
  }
}

/** @throws RangeError unless the positions can be broadcast against each other */
function checkPositionsAgree(owner: string, positions: readonly (Tensor | null)[]): void {
  const given = positions.flatMap((item) => (item === null || item.dtype === 'bool' ? [] : [item]));
  for (const item of given.slice(1)) {
    checkBroadcast(owner, ['positions', 'positions'], given[0]?.shape ?? [], item.shape);
  }
}

/** Writes `value` to the given positions of a view. */
function put(
  view: Tensor,
  positions: readonly (Tensor | null)[],
  value: Tensor | Scalar,
  accumulate: boolean,
): void {
  if (positions.length === 0) {
    if (accumulate) view.add_(value);
    else if (isTensor(value)) copyInto(view, value);
    else view.fill_(value);
    return;
  }
  if (isTensor(value) && value.dtype !== view.dtype) {
    throw new TypeError(
      `indexPut_: value must have the tensor's dtype ${view.dtype}, got ${value.dtype}; ` +
        'convert it with to({ dtype })',
    );
  }
  const values = isTensor(value) ? value : scalarTensor(view, value);
  try {
    explained(
      () => call('aten::index_put_', view, positions, values, accumulate),
      () => checkPositionsAgree('indexPut_', positions),
    );
  } finally {
    if (values !== value) values.dispose();
  }
}

function scalarTensor({ dtype, device }: Tensor, value: Scalar): Tensor {
  return callTensor('aten::scalar_tensor', value, { dtype, device });
}

/** Copies `value`; as in PyTorch, superfluous leading dimensions of size 1 are ignored. */
function copyInto(view: Tensor, value: Tensor): void {
  const { shape } = value;
  const spare = Math.max(shape.length - view.ndim, 0);
  const fits = shape.slice(0, spare).every((size) => size === 1);
  checkBroadcastTo('indexPut_', 'value', fits ? shape.slice(spare) : shape, view.shape);
  call('aten::copy_', view, spare === 0 ? value : value.reshape(shape.slice(spare)));
}

/**
 * Selection by positions and masks. Each method throws TypeError for an argument of a wrong type or
 * dtype, RangeError for positions out of range or shapes that do not match, and TorchError for tensors
 * on different devices or a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class IndexingMethods {
  /** `value` (a number or a 0-dim tensor) where the bool `mask` is true, else this tensor. */
  maskedFill(this: Tensor, mask: Tensor, value: Tensor | Scalar): Tensor {
    checkMask('maskedFill', 'mask', mask);
    checkOperand('maskedFill', 'value', value);
    const op = isTensor(value) ? 'aten::masked_fill.Tensor' : 'aten::masked_fill.Scalar';
    return explained(
      () => callTensor(op, this, mask, value),
      () => {
        checkBroadcast('maskedFill', ['the tensor', 'mask'], this.shape, mask.shape);
        checkSingle('maskedFill', value);
      },
    );
  }

  /** This tensor where the bool `condition` is true, else `other`. */
  where(this: Tensor, condition: Tensor, other: Tensor | Scalar): Tensor {
    return where(condition, this, other);
  }

  /** `out[i][j] = this[index[i][j]][j]` for dim 0, and so on; has the shape of `index`. */
  gather(this: Tensor, dim: number, index: Tensor): Tensor {
    checkIndex('gather', 'dim', dim);
    checkPositions('gather', index);
    checkGpuPositions('gather', this, dim, index);
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
              `${formatShape(shape)} and must not be larger except in dimension ${dim}`,
          );
        }
      },
    );
  }

  /** The slices of dimension `dim` at the positions in the 1-dim `index`, in that order. */
  indexSelect(this: Tensor, dim: number, index: Tensor): Tensor {
    checkIndex('indexSelect', 'dim', dim);
    checkPositions('indexSelect', index);
    checkGpuPositions('indexSelect', this, dim, index);
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
   * Indexing like Python's `x[…]`, with one argument per item: `x.index(0, '1:3', null, mask)` is
   * `x[0, 1:3, None, mask]`. Shares memory with this tensor unless there are masks or positions.
   * See {@link Index} for the items.
   *
   * @throws TypeError for items of another type; RangeError if there are too many items or an index
   *   is out of range
   */
  index(this: Tensor, ...indices: Index[]): Tensor {
    const { view, positions, made } = indexedView('index', this, indices);
    if (positions.length === 0) return view;
    try {
      return explained(
        () => callTensor('aten::index.Tensor', view, positions),
        () => checkPositionsAgree('index', positions),
      );
    } finally {
      for (const tensor of [view, ...made]) tensor.dispose();
    }
  }

  /**
   * Python's `x[…] = value`: `x.indexPut_(['1:', mask], 0)`; returns this tensor.
   *
   * @param value a number, or a tensor that can be broadcast to the selected shape; with masks or
   *   positions it must have the dtype of this tensor
   */
  indexPut_(
    this: Tensor,
    indices: readonly Index[],
    value: Tensor | Scalar,
    options: IndexPutOptions = {},
  ): Tensor {
    if (!Array.isArray(indices)) {
      throw new TypeError(`indexPut_: indices must be an array, got ${describe(indices)}`);
    }
    checkOperand('indexPut_', 'value', value);
    checkOptions('indexPut_', options, ['accumulate']);
    const { accumulate = false } = options;
    checkBoolean('indexPut_', 'accumulate', accumulate);
    const { view, positions, made } = indexedView('indexPut_', this, indices as readonly Index[]);
    try {
      put(view, positions, value, accumulate);
    } finally {
      for (const tensor of [view, ...made]) tensor.dispose();
    }
    return this;
  }

  /** The elements of the flattened tensor at the positions in `index`, in the shape of `index`. */
  take(this: Tensor, index: Tensor): Tensor {
    checkPositions('take', index, ['int64']);
    checkGpuPositions('take', this, null, index, 'fromTheEnd');
    return callTensor('aten::take', this, index);
  }

  /** Like {@link Tensor.gather}, with `index` broadcast against this tensor. */
  takeAlongDim(this: Tensor, index: Tensor, dim: number): Tensor {
    checkIndex('takeAlongDim', 'dim', dim);
    checkPositions('takeAlongDim', index, ['int64']);
    checkGpuPositions('takeAlongDim', this, dim, index, 'fromTheEnd');
    return explained(
      () => callTensor('aten::take_along_dim', this, index, dim),
      () => {
        checkDimRange('takeAlongDim', 'dim', dim, this.ndim);
        const [shape, wanted] = [this.shape, index.shape];
        if (shape.length !== wanted.length) {
          throw new RangeError(
            `takeAlongDim: index ${formatShape(wanted)} must have as many dimensions as the ` +
              `tensor ${formatShape(shape)}`,
          );
        }
      },
    );
  }

  /** {@link Tensor.maskedFill} in place; returns this tensor. */
  maskedFill_(this: Tensor, mask: Tensor, value: Tensor | Scalar): Tensor {
    checkMask('maskedFill_', 'mask', mask);
    checkOperand('maskedFill_', 'value', value);
    const op = isTensor(value) ? 'aten::masked_fill_.Tensor' : 'aten::masked_fill_.Scalar';
    return explained(
      () => callTensor(op, this, mask, value),
      () => {
        checkBroadcastTo('maskedFill_', 'mask', mask.shape, this.shape);
        checkSingle('maskedFill_', value);
      },
    );
  }

  /** The elements where the bool `mask` (broadcast) is true, as a vector. */
  maskedSelect(this: Tensor, mask: Tensor): Tensor {
    checkMask('maskedSelect', 'mask', mask);
    return explained(
      () => callTensor('aten::masked_select', this, mask),
      () => checkBroadcast('maskedSelect', ['the tensor', 'mask'], this.shape, mask.shape),
    );
  }
}
