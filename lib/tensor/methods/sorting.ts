/** Methods of Tensor that sort and search. Indices are int64. */
import { checkBoolean, checkInteger, checkOptions, orDefault } from '../../runtime/arguments.js';
import { checkIndex, checkTensor, explained, formatShape, sizeAt } from '../check.js';
import { callTensor, callTensors } from '../dispatch.js';
import type { Tensor } from '../tensor.js';
import {
  alongDim,
  keepdimOf,
  valuesAndIndices,
  type KeepdimOptions,
  type ValuesAndIndices,
} from './dimensionArguments.js';

/** Options of {@link Tensor.sort} and {@link Tensor.argsort}. */
export interface SortOptions {
  /** Sort from largest to smallest. Default false. */
  descending?: boolean;
  /** Keep the order of equal elements. Default false, as in PyTorch. */
  stable?: boolean;
}

/** Options of {@link Tensor.topk}. */
export interface TopkOptions {
  /** Dimension. Default -1. */
  dim?: number;
  /** Return the largest elements, or the smallest if false. Default true. */
  largest?: boolean;
  /** Return the elements in order. Default true. */
  sorted?: boolean;
}

/** Options of {@link Tensor.unique} and related methods. */
export interface UniqueOptions {
  /** Compare slices along this dimension. Default: the elements of the flattened tensor. */
  dim?: number;
}

/** Distinct elements, their positions and counts. */
export interface UniqueParts {
  /** The distinct elements. */
  values: Tensor;
  /** For each element of the tensor, its index in `values`. */
  inverse: Tensor;
  /** The number of occurrences of each of `values`. */
  counts: Tensor;
}

/** Options of {@link Tensor.searchsorted} and {@link Tensor.bucketize}. */
export interface SearchOptions {
  /** Return positions after equal elements instead of before them. Default false. */
  right?: boolean;
}

function unique(self: Tensor, name: string, options: UniqueOptions, consecutive: boolean) {
  checkOptions(name, options, ['dim']);
  const { dim } = options;
  const run = (): Tensor[] => {
    if (consecutive) return callTensors('aten::unique_consecutive', self, true, true, dim ?? null);
    return dim === undefined
      ? callTensors('aten::_unique2', self, true, true, true)
      : callTensors('aten::unique_dim', self, dim, true, true, true);
  };
  const [values, inverse, counts] = dim === undefined ? run() : alongDim(self, name, dim, run);
  return { values, inverse, counts } as UniqueParts;
}

function onlyValues({ values, inverse, counts }: UniqueParts): Tensor {
  inverse.dispose();
  counts.dispose();
  return values;
}

function rightOf(owner: string, options: SearchOptions): boolean {
  checkOptions(owner, options, ['right']);
  return checkBoolean(owner, 'right', orDefault(options.right, false));
}

/**
 * Sorting and searching. Each method throws TypeError for an argument of a wrong type or dtype,
 * RangeError for a dimension out of range, and TorchError for a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class SortingMethods {
  /** The sorted elements along `dim` and their indices. Default: last dimension, ascending. */
  sort(this: Tensor, dim = -1, options: SortOptions = {}): ValuesAndIndices {
    checkOptions('sort', options, ['descending', 'stable']);
    const { descending = false, stable = false } = options;
    checkBoolean('sort', 'descending', descending);
    checkBoolean('sort', 'stable', stable);
    return alongDim(this, 'sort', dim, () =>
      valuesAndIndices(callTensors('aten::sort.stable', this, { stable, dim, descending })),
    );
  }

  /** The indices that sort the tensor along `dim`. */
  argsort(this: Tensor, dim = -1, options: SortOptions = {}): Tensor {
    checkOptions('argsort', options, ['descending', 'stable']);
    const { values, indices } = this.sort(dim, options);
    values.dispose();
    return indices;
  }

  /** The `k` largest elements along a dimension and their indices. The order of ties is undefined. */
  topk(this: Tensor, k: number, options: TopkOptions = {}): ValuesAndIndices {
    checkInteger('topk', 'k', k, 0);
    checkOptions('topk', options, ['dim', 'largest', 'sorted']);
    const { dim = -1, largest = true, sorted = true } = options;
    checkBoolean('topk', 'largest', largest);
    checkBoolean('topk', 'sorted', sorted);
    return alongDim(
      this,
      'topk',
      dim,
      () => valuesAndIndices(callTensors('aten::topk', this, k, dim, largest, sorted)),
      () => checkRank('topk', this, k, dim),
    );
  }

  /** The `k`-th smallest element (counted from 1) along `dim` and its index. */
  kthvalue(this: Tensor, k: number, dim = -1, options: KeepdimOptions = {}): ValuesAndIndices {
    checkInteger('kthvalue', 'k', k, 1);
    const keepdim = keepdimOf('kthvalue', options);
    return alongDim(
      this,
      'kthvalue',
      dim,
      () => valuesAndIndices(callTensors('aten::kthvalue', this, k, dim, keepdim)),
      () => checkRank('kthvalue', this, k, dim),
    );
  }

  /** The distinct elements, or slices of `dim`, in ascending order. */
  unique(this: Tensor, options: UniqueOptions = {}): Tensor {
    return onlyValues(unique(this, 'unique', options, false));
  }

  /** Like {@link Tensor.unique}, with the index of each element among them and their counts. */
  uniqueParts(this: Tensor, options: UniqueOptions = {}): UniqueParts {
    return unique(this, 'uniqueParts', options, false);
  }

  /** The elements, or slices of `dim`, without those equal to the previous one. */
  uniqueConsecutive(this: Tensor, options: UniqueOptions = {}): Tensor {
    return onlyValues(unique(this, 'uniqueConsecutive', options, true));
  }

  /**
   * The position at which each of `values` would be inserted into this tensor, which must be sorted
   * along its last dimension.
   *
   * @throws RangeError unless this is a vector or all dimensions except the last are equal
   */
  searchsorted(this: Tensor, values: Tensor, options: SearchOptions = {}): Tensor {
    checkTensor('searchsorted', 'values', values);
    const right = rightOf('searchsorted', options);
    return explained(
      () => callTensor('aten::searchsorted.Tensor', this, values, { right }),
      () => {
        const [sorted, wanted] = [this.shape, values.shape];
        if (sorted.length !== 1 && sorted.slice(0, -1).join() !== wanted.slice(0, -1).join()) {
          throw new RangeError(
            `searchsorted: values ${formatShape(wanted)} must match the tensor ` +
              `${formatShape(sorted)} in all dimensions except the last`,
          );
        }
      },
    );
  }

  /** For each element, the index of the interval between sorted `boundaries` that contains it. */
  bucketize(this: Tensor, boundaries: Tensor, options: SearchOptions = {}): Tensor {
    checkTensor('bucketize', 'boundaries', boundaries);
    const right = rightOf('bucketize', options);
    return explained(
      () => callTensor('aten::bucketize.Tensor', this, boundaries, { right }),
      () => {
        if (boundaries.ndim !== 1) {
          throw new RangeError(
            `bucketize: boundaries must be a vector [N], got ${formatShape(boundaries.shape)}`,
          );
        }
      },
    );
  }

  /** The indices of the elements that are not 0, one row each: `[count, ndim]`, int64. */
  nonzero(this: Tensor): Tensor {
    return callTensor('aten::nonzero', this);
  }

  /** {@link Tensor.nonzero} as one tensor per dimension, for {@link Tensor.index}. */
  nonzeroTuple(this: Tensor): Tensor[] {
    return callTensors('aten::nonzero_numpy', this);
  }
}

function checkRank(owner: string, self: Tensor, k: number, dim: number): void {
  checkIndex(owner, 'dim', dim);
  const size = sizeAt(self.shape, dim);
  if (k > size) {
    throw new RangeError(
      `${owner}: k must be at most ${size}, the size of dimension ${dim}, got ${k}`,
    );
  }
}
