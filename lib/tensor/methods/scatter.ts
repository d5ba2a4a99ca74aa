/**
 * Methods of Tensor that write elements to positions given by an int64 tensor, the reverse of `gather`
 * and `indexSelect`. Those with a trailing underscore change the tensor and return it.
 */
import { checkBoolean, checkChoice, checkOptions, orDefault } from '../../runtime/arguments.js';
import {
  checkDimRange,
  checkIndex,
  checkOperand,
  checkScalar,
  checkTensor,
  explained,
  formatShape,
  sizeAt,
  type Scalar,
} from '../check.js';
import { callTensor } from '../dispatch.js';
import { checkGpuPositions, type NegativePositions } from '../gpuPositions.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';
import { checkPositions } from './indexing.js';
import type { AlphaOptions } from './elementwise.js';

/** Options of {@link Tensor.scatterReduce}. */
export interface ScatterReduceOptions {
  /** Whether to include the elements of the tensor itself. Default true. */
  includeSelf?: boolean;
}

/** How {@link Tensor.scatterReduce} combines elements with the same position. */
export type ScatterReduction = 'sum' | 'prod' | 'mean' | 'amax' | 'amin';

const reductions: readonly ScatterReduction[] = ['sum', 'prod', 'mean', 'amax', 'amin'];

/** @throws RangeError unless `index` fits in the tensor (except for `dim`) and in `source` */
function checkScatter(
  owner: string,
  self: Tensor,
  dim: number,
  index: Tensor,
  source: Tensor | null,
): void {
  const [shape, wanted] = [self.shape, index.shape];
  checkDimRange(owner, 'dim', dim, shape.length);
  const axis = dim < 0 ? dim + shape.length : dim;
  const inSelf =
    wanted.length === shape.length &&
    wanted.every((size, at) => at === axis || size <= (shape[at] ?? 0));
  if (!inSelf) {
    throw new RangeError(
      `${owner}: index ${formatShape(wanted)} must have as many dimensions as the tensor ` +
        `${formatShape(shape)} and must not be larger except in dimension ${dim}`,
    );
  }
  if (source === null) return;
  const from = source.shape;
  const inSource =
    from.length === wanted.length && wanted.every((size, at) => size <= (from[at] ?? 0));
  if (!inSource) {
    throw new RangeError(
      `${owner}: source ${formatShape(from)} must be at least as large as index ` +
        `${formatShape(wanted)} in every dimension`,
    );
  }
  checkSourceDType(owner, self, source);
}

/** @throws TypeError when the dtypes differ, of which libtorch converts neither */
function checkSourceDType(owner: string, self: Tensor, source: Tensor): void {
  if (source.dtype === self.dtype) return;
  throw new TypeError(
    `${owner}: source must have the tensor's dtype ${self.dtype}, got ${source.dtype}`,
  );
}

function scatter(
  self: Tensor,
  [name, op]: [string, string],
  dim: number,
  index: Tensor,
  source: Tensor | Scalar,
): Tensor {
  checkIndex(name, 'dim', dim);
  checkPositions(name, index, ['int64']);
  checkGpuPositions(name, self, dim, index);
  checkOperand(name, 'source', source);
  const overload = isTensor(source) ? 'src' : 'value';
  return explained(
    () => callTensor(`${op}.${overload}`, self, dim, index, source),
    () => checkScatter(name, self, dim, index, isTensor(source) ? source : null),
  );
}

function scatterAdd(
  self: Tensor,
  [name, op]: [string, string],
  dim: number,
  index: Tensor,
  source: Tensor,
): Tensor {
  checkIndex(name, 'dim', dim);
  checkPositions(name, index, ['int64']);
  checkGpuPositions(name, self, dim, index);
  checkTensor(name, 'source', source);
  return explained(
    () => callTensor(op, self, dim, index, source),
    () => checkScatter(name, self, dim, index, source),
  );
}

/** Runs an op on the slices of `dim` at the positions in a vector. */
function slices(
  self: Tensor,
  name: string,
  dim: number,
  index: Tensor,
  source: Tensor | null,
  run: () => Tensor,
  negative: NegativePositions = 'rejected',
): Tensor {
  checkIndex(name, 'dim', dim);
  checkPositions(name, index, ['int64']);
  checkGpuPositions(name, self, dim, index, negative);
  return explained(run, () => {
    const { shape } = self;
    checkDimRange(name, 'dim', dim, shape.length);
    if (index.ndim > 1) {
      throw new RangeError(`${name}: index must be a vector [N], got ${formatShape(index.shape)}`);
    }
    if (source === null) return;
    const wanted = shape.map((size, at) =>
      at === (dim < 0 ? dim + shape.length : dim) ? index.numel : size,
    );
    if (source.shape.join() !== wanted.join()) {
      throw new RangeError(
        `${name}: source must be ${formatShape(wanted)} (dimension ${dim} of size ` +
          `${sizeAt(shape, dim)} replaced by the number of positions), got ` +
          formatShape(source.shape),
      );
    }
    checkSourceDType(name, self, source);
  });
}

function indexAdd(
  self: Tensor,
  [name, op]: [string, string],
  dim: number,
  index: Tensor,
  source: Tensor,
  options: AlphaOptions,
): Tensor {
  checkTensor(name, 'source', source);
  checkOptions(name, options, ['alpha']);
  const { alpha = 1 } = options;
  checkScalar(name, 'alpha', alpha);
  return slices(self, name, dim, index, source, () =>
    callTensor(op, self, dim, index, source, { alpha }),
  );
}

function indexFill(
  self: Tensor,
  [name, op]: [string, string],
  dim: number,
  index: Tensor,
  value: Scalar,
): Tensor {
  checkScalar(name, 'value', value);
  const run = () => callTensor(`${op}.int_Scalar`, self, dim, index, value);
  return slices(self, name, dim, index, null, run, 'fromTheEnd');
}

function indexCopy(
  self: Tensor,
  [name, op]: [string, string],
  dim: number,
  index: Tensor,
  source: Tensor,
): Tensor {
  checkTensor(name, 'source', source);
  return slices(self, name, dim, index, source, () => callTensor(op, self, dim, index, source));
}

/**
 * Writing to positions. Each method throws TypeError for an argument of a wrong type or dtype,
 * RangeError for positions out of range or shapes that do not match, and TorchError for tensors on
 * different devices or a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class ScatterMethods {
  /**
   * A copy with `out[index[i][j]][j] = source[i][j]` for dim 0, and so on. If a position occurs more
   * than once, any of its values may be written.
   *
   * @param source a tensor at least as large as `index`, or a number
   */
  scatter(this: Tensor, dim: number, index: Tensor, source: Tensor | Scalar): Tensor {
    return scatter(this, ['scatter', 'aten::scatter'], dim, index, source);
  }

  /** {@link Tensor.scatter} in place. */
  scatter_(this: Tensor, dim: number, index: Tensor, source: Tensor | Scalar): Tensor {
    return scatter(this, ['scatter_', 'aten::scatter_'], dim, index, source);
  }

  /** A copy with `out[index[i][j]][j] += source[i][j]` for dim 0, and so on. */
  scatterAdd(this: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
    return scatterAdd(this, ['scatterAdd', 'aten::scatter_add'], dim, index, source);
  }

  /** {@link Tensor.scatterAdd} in place. */
  scatterAdd_(this: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
    return scatterAdd(this, ['scatterAdd_', 'aten::scatter_add_'], dim, index, source);
  }

  /** Like {@link Tensor.scatterAdd}, with another way to combine elements with the same position. */
  scatterReduce(
    this: Tensor,
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: ScatterReduction,
    options: ScatterReduceOptions = {},
  ): Tensor {
    const name = 'scatterReduce';
    checkIndex(name, 'dim', dim);
    checkPositions(name, index, ['int64']);
    checkGpuPositions(name, this, dim, index);
    checkTensor(name, 'source', source);
    checkChoice(name, 'reduce', reduce, reductions);
    checkOptions(name, options, ['includeSelf']);
    const include_self = checkBoolean(name, 'includeSelf', orDefault(options.includeSelf, true));
    return explained(
      () =>
        callTensor('aten::scatter_reduce.two', this, dim, index, source, reduce, { include_self }),
      () => checkScatter(name, this, dim, index, source),
    );
  }

  /** A copy with the slices of `alpha · source` along `dim` added at the positions in `index`. */
  indexAdd(
    this: Tensor,
    dim: number,
    index: Tensor,
    source: Tensor,
    options: AlphaOptions = {},
  ): Tensor {
    return indexAdd(this, ['indexAdd', 'aten::index_add'], dim, index, source, options);
  }

  /** {@link Tensor.indexAdd} in place. */
  indexAdd_(
    this: Tensor,
    dim: number,
    index: Tensor,
    source: Tensor,
    options: AlphaOptions = {},
  ): Tensor {
    return indexAdd(this, ['indexAdd_', 'aten::index_add_'], dim, index, source, options);
  }

  /** A copy with the slices of `dim` at the positions in `index` set to `value`. */
  indexFill(this: Tensor, dim: number, index: Tensor, value: Scalar): Tensor {
    return indexFill(this, ['indexFill', 'aten::index_fill'], dim, index, value);
  }

  /** {@link Tensor.indexFill} in place. */
  indexFill_(this: Tensor, dim: number, index: Tensor, value: Scalar): Tensor {
    return indexFill(this, ['indexFill_', 'aten::index_fill_'], dim, index, value);
  }

  /** A copy with the slices of `dim` at the positions in `index` replaced by those of `source`. */
  indexCopy(this: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
    return indexCopy(this, ['indexCopy', 'aten::index_copy'], dim, index, source);
  }

  /** {@link Tensor.indexCopy} in place. */
  indexCopy_(this: Tensor, dim: number, index: Tensor, source: Tensor): Tensor {
    return indexCopy(this, ['indexCopy_', 'aten::index_copy_'], dim, index, source);
  }
}
