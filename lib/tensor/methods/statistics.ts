/** More methods of Tensor that reduce dimensions: products, norms, order statistics, counts. */
import { checkInteger, checkNumber, checkOptions } from '../../runtime/arguments.js';
import { checkBroadcast, checkTensor, explained, formatShape } from '../check.js';
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
import type { ReduceOptions, VarianceOptions } from './reduction.js';

/** Options of {@link Tensor.cumsum} and {@link Tensor.cumprod}. */
export interface CumulateOptions {
  /** Convert to this dtype before computing. */
  dtype?: DType;
}

/** Options of {@link Tensor.aminmax}. */
export interface AminmaxOptions extends KeepdimOptions {
  /** Dimension. Default: all elements. */
  dim?: number;
}

/** Options of {@link Tensor.bincount}. */
export interface BincountOptions {
  /** A weight for each element. Default: 1. */
  weights?: Tensor;
  /** Minimum number of bins. Default 0. */
  minlength?: number;
}

function overDims(
  self: Tensor,
  name: string,
  dim: Dims | undefined,
  options: KeepdimOptions,
): Tensor {
  const dims = dimsOf(name, dim) ?? [];
  const keepdim = keepdimOf(name, options);
  return explained(
    () => callTensor(`aten::${name}`, self, dims, keepdim),
    () => {
      checkDimsRange(name, dims, self.ndim);
      checkNotEmpty(name, self);
    },
  );
}

function nanAware(
  self: Tensor,
  name: 'nansum' | 'nanmean',
  dim: Dims | undefined,
  options: ReduceOptions,
): Tensor {
  const dims = dimsOf(name, dim);
  const keepdim = keepdimOf(name, options, ['dtype']);
  const { dtype } = options;
  if (dtype !== undefined) checkDType(name, 'dtype', dtype);
  return explained(
    () => callTensor(`aten::${name}`, self, dims, keepdim, { dtype: dtype ?? null }),
    () => {
      checkDimsRange(name, dims, self.ndim);
      if (name === 'nanmean') checkFloating(name, self.dtype);
    },
  );
}

function running(self: Tensor, name: string, dim: number, options: CumulateOptions): Tensor {
  checkOptions(name, options, ['dtype']);
  const { dtype } = options;
  if (dtype !== undefined) checkDType(name, 'dtype', dtype);
  return alongDim(self, name, dim, () =>
    callTensor(`aten::${name}`, self, dim, { dtype: dtype ?? null }),
  );
}

function withMean(
  self: Tensor,
  [name, op]: [string, string],
  dim: Dims | undefined,
  options: VarianceOptions,
): [Tensor, Tensor] {
  const dims = dimsOf(name, dim);
  const keepdim = keepdimOf(name, options, ['correction']);
  const { correction = 1 } = options;
  checkNumber(name, 'correction', correction);
  return explained(
    () => callTensors(op, self, dims, { correction, keepdim }) as [Tensor, Tensor],
    () => {
      checkDimsRange(name, dims, self.ndim);
      checkFloating(name, self.dtype);
    },
  );
}

/**
 * Products, norms, order statistics. Each method throws TypeError for an argument of a wrong type or
 * dtype, RangeError for a dimension out of range, and TorchError for a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class StatisticsMethods {
  /** Product of all elements, or of those along one dimension. */
  prod(this: Tensor, dim?: number | null, options: ReduceOptions = {}): Tensor {
    const keepdim = keepdimOf('prod', options, ['dtype']);
    if (options.dtype !== undefined) checkDType('prod', 'dtype', options.dtype);
    const dtype = options.dtype ?? null;
    checkKeepdimHasDim('prod', dim ?? undefined, keepdim);
    if (dim === undefined || dim === null) return callTensor('aten::prod', this, { dtype });
    return alongDim(this, 'prod', dim, () =>
      callTensor('aten::prod.dim_int', this, dim, keepdim, { dtype }),
    );
  }

  /** The largest elements over one or several dimensions; ties share the gradient evenly. */
  amax(this: Tensor, dim?: Dims, options: KeepdimOptions = {}): Tensor {
    return overDims(this, 'amax', dim, options);
  }

  /** The smallest elements over one or several dimensions; ties share the gradient evenly. */
  amin(this: Tensor, dim?: Dims, options: KeepdimOptions = {}): Tensor {
    return overDims(this, 'amin', dim, options);
  }

  /** Smallest and largest elements in one pass, over all elements or along `dim`. */
  aminmax(this: Tensor, options: AminmaxOptions = {}): { min: Tensor; max: Tensor } {
    const keepdim = keepdimOf('aminmax', options, ['dim']);
    const dim = dimsOf('aminmax', options.dim)?.[0] ?? null;
    return explained(
      () => {
        const [min, max] = callTensors('aten::aminmax', this, { dim, keepdim });
        return { min, max } as { min: Tensor; max: Tensor };
      },
      () => {
        if (dim !== null) checkDimsRange('aminmax', [dim], this.ndim);
        checkNotEmpty('aminmax', this);
      },
    );
  }

  /**
   * Vector norm `(Σ |x|^p)^(1/p)` over all elements or `dim`; `Infinity` gives the maximum absolute
   * value, 0 the number of non-zeros. Default 2. Matrix norms: `linalg.matrixNorm`.
   */
  norm(this: Tensor, p = 2, dim?: Dims, options: KeepdimOptions = {}): Tensor {
    checkNumber('norm', 'p', p);
    const dims = dimsOf('norm', dim);
    const keepdim = keepdimOf('norm', options);
    return explained(
      () => callTensor('aten::linalg_vector_norm', this, p, dims, keepdim),
      () => {
        checkDimsRange('norm', dims, this.ndim);
        checkFloating('norm', this.dtype);
      },
    );
  }

  /** Alias of {@link Tensor.variance}, with PyTorch's name. */
  var(this: Tensor, dim?: Dims, options: VarianceOptions = {}): Tensor {
    return this.variance(dim, options);
  }

  /** Variance and mean in one pass. */
  varMean(this: Tensor, dim?: Dims, options: VarianceOptions = {}): [Tensor, Tensor] {
    return withMean(this, ['varMean', 'aten::var_mean.correction'], dim, options);
  }

  /** Standard deviation and mean in one pass. */
  stdMean(this: Tensor, dim?: Dims, options: VarianceOptions = {}): [Tensor, Tensor] {
    return withMean(this, ['stdMean', 'aten::std_mean.correction'], dim, options);
  }

  /** The median; for an even count, the lower of the two middle elements, as in PyTorch. */
  median(this: Tensor): Tensor;
  /** The medians along `dim` and their indices. */
  median(this: Tensor, dim: number, options?: KeepdimOptions): ValuesAndIndices;
  median(this: Tensor, dim?: number, options: KeepdimOptions = {}): Tensor | ValuesAndIndices {
    const keepdim = keepdimOf('median', options);
    checkKeepdimHasDim('median', dim, keepdim);
    if (dim === undefined) return callTensor('aten::median', this);
    return alongDim(
      this,
      'median',
      dim,
      () => valuesAndIndices(callTensors('aten::median.dim', this, dim, keepdim)),
      () => checkNotEmpty('median', this),
    );
  }

  /** The most frequent elements along `dim` (if tied, the smallest) and an index of each. */
  mode(this: Tensor, dim = -1, options: KeepdimOptions = {}): ValuesAndIndices {
    const keepdim = keepdimOf('mode', options);
    return alongDim(
      this,
      'mode',
      dim,
      () => valuesAndIndices(callTensors('aten::mode', this, dim, keepdim)),
      () => checkNotEmpty('mode', this),
    );
  }

  /**
   * The `q`-th quantile, with linear interpolation; 0.5 is the median. Over all elements or along
   * `dim`.
   */
  quantile(this: Tensor, q: number, dim?: number | null, options: KeepdimOptions = {}): Tensor {
    checkNumber('quantile', 'q', q);
    if (!(q >= 0 && q <= 1)) throw new RangeError(`quantile: q must be from 0 to 1, got ${q}`);
    const keepdim = keepdimOf('quantile', options);
    const axis = dimsOf('quantile', dim)?.[0] ?? null;
    return explained(
      () => callTensor('aten::quantile.scalar', this, q, axis, keepdim),
      () => {
        if (axis !== null) checkDimsRange('quantile', [axis], this.ndim);
        checkNotEmpty('quantile', this);
        checkFloating('quantile', this.dtype);
      },
    );
  }

  /** Number of elements that are not 0, over all elements or `dim`. */
  countNonzero(this: Tensor, dim?: Dims): Tensor {
    const dims = dimsOf('countNonzero', dim);
    if (dims === null) return callTensor('aten::count_nonzero', this);
    return explained(
      () => callTensor('aten::count_nonzero.dim_IntList', this, dims),
      () => checkDimsRange('countNonzero', dims, this.ndim),
    );
  }

  /** Like {@link Tensor.sum}, with NaN treated as 0. */
  nansum(this: Tensor, dim?: Dims, options: ReduceOptions = {}): Tensor {
    return nanAware(this, 'nansum', dim, options);
  }

  /** Like {@link Tensor.mean}, over the elements that are not NaN. */
  nanmean(this: Tensor, dim?: Dims, options: ReduceOptions = {}): Tensor {
    return nanAware(this, 'nanmean', dim, options);
  }

  /** Cumulative sums along `dim`. */
  cumsum(this: Tensor, dim: number, options: CumulateOptions = {}): Tensor {
    return running(this, 'cumsum', dim, options);
  }

  /** Cumulative products along `dim`. */
  cumprod(this: Tensor, dim: number, options: CumulateOptions = {}): Tensor {
    return running(this, 'cumprod', dim, options);
  }

  /** Cumulative maxima along `dim` and their indices. */
  cummax(this: Tensor, dim: number): ValuesAndIndices {
    return alongDim(this, 'cummax', dim, () =>
      valuesAndIndices(callTensors('aten::cummax', this, dim)),
    );
  }

  /** Cumulative minima along `dim` and their indices. */
  cummin(this: Tensor, dim: number): ValuesAndIndices {
    return alongDim(this, 'cummin', dim, () =>
      valuesAndIndices(callTensors('aten::cummin', this, dim)),
    );
  }

  /** Cumulative `log(Σ exp)` along `dim`, without overflow. */
  logcumsumexp(this: Tensor, dim: number): Tensor {
    return alongDim(
      this,
      'logcumsumexp',
      dim,
      () => callTensor('aten::logcumsumexp', this, dim),
      () => checkFloating('logcumsumexp', this.dtype),
    );
  }

  /** The number of occurrences of 0, 1, 2, … in a vector of non-negative integers. */
  bincount(this: Tensor, options: BincountOptions = {}): Tensor {
    checkOptions('bincount', options, ['weights', 'minlength']);
    const { weights, minlength = 0 } = options;
    if (weights !== undefined) checkTensor('bincount', 'weights', weights);
    checkInteger('bincount', 'minlength', minlength, 0);
    return explained(
      () => callTensor('aten::bincount', this, weights ?? null, minlength),
      () => {
        if (this.ndim !== 1) {
          throw new RangeError(`bincount: needs a vector [N], got ${formatShape(this.shape)}`);
        }
        if (weights !== undefined) {
          checkBroadcast('bincount', ['the tensor', 'weights'], this.shape, weights.shape);
        }
      },
    );
  }
}
