/** Methods of Tensor that reduce dimensions: sums, extremes, softmax. */
import { checkNumber, checkOptions } from '../../runtime/arguments.js';
import { checkDimRange, checkIndex, explained } from '../check.js';
import { callTensor, callTensors } from '../dispatch.js';
import { checkDType, type DType } from '../dtype.js';
import type { Tensor } from '../tensor.js';
import {
  alongDim,
  checkDimsRange,
  checkFloating,
  checkKeepdimHasDim,
  checkNotEmpty,
  dimsOf,
  keepdimOf,
  valuesAndIndices,
  type Dims,
  type KeepdimOptions,
  type ValuesAndIndices,
} from './dimensionArguments.js';

/** Options of sums, means and products. */
export interface ReduceOptions extends KeepdimOptions {
  /** Convert to this dtype before reducing. Default as in PyTorch: int64 for sums of integers. */
  dtype?: DType;
}

/** Options of variances and standard deviations. */
export interface VarianceOptions extends KeepdimOptions {
  /** The divisor is the count minus this: 1 (default) for a sample, 0 for a population. */
  correction?: number;
}

/** Options of {@link Tensor.softmax} and {@link Tensor.logSoftmax}. */
export interface SoftmaxOptions {
  /** Convert to this dtype before computing. */
  dtype?: DType;
}

function reduce(
  self: Tensor,
  name: 'sum' | 'mean',
  op: string,
  dim: Dims | undefined,
  options: ReduceOptions,
): Tensor {
  const dims = dimsOf(name, dim);
  const keepdim = keepdimOf(name, options, ['dtype']);
  const { dtype } = options;
  if (dtype !== undefined) checkDType(name, 'dtype', dtype);
  return explained(
    () =>
      dtype === undefined
        ? callTensor(op, self, dims, keepdim)
        : callTensor(op, self, dims, keepdim, { dtype }),
    () => {
      checkDimsRange(name, dims, self.ndim);
      if (name === 'mean') checkFloating(name, dtype ?? self.dtype);
    },
  );
}

function spread(
  self: Tensor,
  name: string,
  op: string,
  dim: Dims | undefined,
  options: VarianceOptions,
): Tensor {
  const dims = dimsOf(name, dim);
  const keepdim = keepdimOf(name, options, ['correction']);
  const { correction = 1 } = options;
  checkNumber(name, 'correction', correction);
  return explained(
    () => callTensor(op, self, dims, { correction, keepdim }),
    () => {
      checkDimsRange(name, dims, self.ndim);
      checkFloating(name, self.dtype);
    },
  );
}

function extreme(
  self: Tensor,
  name: 'max' | 'min',
  dim: number | undefined,
  options: KeepdimOptions,
): Tensor | ValuesAndIndices {
  const keepdim = keepdimOf(name, options);
  checkKeepdimHasDim(name, dim, keepdim);
  if (dim !== undefined) checkIndex(name, 'dim', dim);
  return explained(
    () => {
      if (dim === undefined) return callTensor(`aten::${name}`, self);
      return valuesAndIndices(callTensors(`aten::${name}.dim`, self, dim, keepdim));
    },
    () => {
      if (dim !== undefined) checkDimRange(name, 'dim', dim, self.ndim);
      checkNotEmpty(name, self);
    },
  );
}

function indexOfExtreme(
  self: Tensor,
  name: 'argmax' | 'argmin',
  dim: number | null | undefined,
  options: KeepdimOptions,
): Tensor {
  const keepdim = keepdimOf(name, options);
  const axis = dim ?? null;
  if (axis !== null) checkIndex(name, 'dim', axis);
  return explained(
    () => callTensor(`aten::${name}`, self, axis, keepdim),
    () => {
      if (axis !== null) checkDimRange(name, 'dim', axis, self.ndim);
      checkNotEmpty(name, self);
    },
  );
}

function truth(
  self: Tensor,
  name: 'any' | 'all',
  dim: number | undefined,
  options: KeepdimOptions,
): Tensor {
  const keepdim = keepdimOf(name, options);
  checkKeepdimHasDim(name, dim, keepdim);
  if (dim === undefined) return callTensor(`aten::${name}`, self);
  return alongDim(self, name, dim, () => callTensor(`aten::${name}.dim`, self, dim, keepdim));
}

function softmaxLike(
  self: Tensor,
  name: string,
  op: string,
  dim: number,
  options: SoftmaxOptions,
): Tensor {
  checkOptions(name, options, ['dtype']);
  const { dtype } = options;
  if (dtype !== undefined) checkDType(name, 'dtype', dtype);
  checkIndex(name, 'dim', dim);
  return explained(
    () => callTensor(op, self, dim, dtype ?? null),
    () => {
      checkDimRange(name, 'dim', dim, self.ndim);
      checkFloating(name, dtype ?? self.dtype);
    },
  );
}

/**
 * Sums, extremes, softmax. Each method throws TypeError for an argument of a wrong type or dtype,
 * RangeError for a dimension out of range, and TorchError for a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class ReductionMethods {
  /** Sum over `dim` (one, several, all by default). Integers and bools are summed as int64. */
  sum(this: Tensor, dim?: Dims, options: ReduceOptions = {}): Tensor {
    return reduce(this, 'sum', 'aten::sum.dim_IntList', dim, options);
  }

  /** Mean over `dim` (one, several, all by default) of a floating-point tensor. */
  mean(this: Tensor, dim?: Dims, options: ReduceOptions = {}): Tensor {
    return reduce(this, 'mean', 'aten::mean.dim', dim, options);
  }

  /** Variance over `dim`, of a sample by default (`correction` 1), as in PyTorch. */
  variance(this: Tensor, dim?: Dims, options: VarianceOptions = {}): Tensor {
    return spread(this, 'variance', 'aten::var.correction', dim, options);
  }

  /** Standard deviation over `dim`, of a sample by default (`correction` 1), as in PyTorch. */
  std(this: Tensor, dim?: Dims, options: VarianceOptions = {}): Tensor {
    return spread(this, 'std', 'aten::std.correction', dim, options);
  }

  /** The largest element as a 0-dim tensor. */
  max(this: Tensor): Tensor;
  /** The largest elements along `dim` and their indices. */
  max(this: Tensor, dim: number, options?: KeepdimOptions): ValuesAndIndices;
  max(this: Tensor, dim?: number, options: KeepdimOptions = {}): Tensor | ValuesAndIndices {
    return extreme(this, 'max', dim, options);
  }

  /** The smallest element as a 0-dim tensor. */
  min(this: Tensor): Tensor;
  /** The smallest elements along `dim` and their indices. */
  min(this: Tensor, dim: number, options?: KeepdimOptions): ValuesAndIndices;
  min(this: Tensor, dim?: number, options: KeepdimOptions = {}): Tensor | ValuesAndIndices {
    return extreme(this, 'min', dim, options);
  }

  /** Index (int64) of the largest element along `dim`, or in the flattened tensor; ties: the first. */
  argmax(this: Tensor, dim?: number | null, options: KeepdimOptions = {}): Tensor {
    return indexOfExtreme(this, 'argmax', dim, options);
  }

  /** Index (int64) of the smallest element along `dim`, or in the flattened tensor; ties: the first. */
  argmin(this: Tensor, dim?: number | null, options: KeepdimOptions = {}): Tensor {
    return indexOfExtreme(this, 'argmin', dim, options);
  }

  /** Whether any element is non-zero, over all elements or along `dim`. */
  any(this: Tensor, dim?: number, options: KeepdimOptions = {}): Tensor {
    return truth(this, 'any', dim, options);
  }

  /** Whether all elements are non-zero, over all elements or along `dim`. */
  all(this: Tensor, dim?: number, options: KeepdimOptions = {}): Tensor {
    return truth(this, 'all', dim, options);
  }

  /** `log(sum(exp(this)))` along `dim`, without overflow. */
  logsumexp(this: Tensor, dim: Dims, options: KeepdimOptions = {}): Tensor {
    const dims = dimsOf('logsumexp', dim) ?? this.shape.map((_size, index) => index);
    const keepdim = keepdimOf('logsumexp', options);
    return explained(
      () => callTensor('aten::logsumexp', this, dims, keepdim),
      () => checkDimsRange('logsumexp', dims, this.ndim),
    );
  }

  /** Softmax along `dim`: exponentials, scaled to sum to 1. */
  softmax(this: Tensor, dim: number, options: SoftmaxOptions = {}): Tensor {
    return softmaxLike(this, 'softmax', 'aten::softmax.int', dim, options);
  }

  /** Logarithm of {@link Tensor.softmax}, computed in one step. */
  logSoftmax(this: Tensor, dim: number, options: SoftmaxOptions = {}): Tensor {
    return softmaxLike(this, 'logSoftmax', 'aten::log_softmax.int', dim, options);
  }
}
