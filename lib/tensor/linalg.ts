/** Matrix decompositions and linear systems for matrices `[…, R, C]`, like `torch.linalg`. */
import {
  checkBoolean,
  checkInteger,
  checkOptions,
  describe,
  orDefault,
} from '../runtime/arguments.js';
import { checkDims, checkIndex, checkTensor, explained, formatShape } from './check.js';
import { call, callTensor, callTensors } from './dispatch.js';
import type { KeepdimOptions } from './methods/dimensionArguments.js';
import { checkFloating, keepdimOf } from './methods/dimensionArguments.js';
import type { Tensor } from './tensor.js';

/** `'fro'` (Frobenius), `'nuc'` (nuclear), ±1, ±2 or ±Infinity. */
export type MatrixNorm = 'fro' | 'nuc' | number;

/** Options of `linalg.svd`. */
export interface SvdOptions {
  /** Return square `U` and `Vh`. Default true, as in PyTorch. */
  fullMatrices?: boolean;
}

/** Options of `linalg.cholesky`, `eigh` and `eigvalsh`. */
export interface UpperOptions {
  /** `cholesky`: return the upper triangle. `eigh`: read the upper triangle. Default false. */
  upper?: boolean;
}

/** Runs an op on floating-point matrices, square if required; shape errors name the parameter. */
function onMatrix<Result>(
  owner: string,
  input: Tensor,
  square: boolean,
  run: () => Result,
): Result {
  checkTensor(owner, 'input', input);
  return explained(run, () => {
    checkFloating(owner, input.dtype);
    const { shape } = input;
    const fits = shape.length >= 2 && (!square || shape.at(-1) === shape.at(-2));
    if (!fits) {
      const form = square ? 'square matrices […, N, N]' : 'matrices […, R, C]';
      throw new RangeError(`${owner}: input must be ${form}, got ${formatShape(shape)}`);
    }
  });
}

function upperOf(owner: string, options: UpperOptions): boolean {
  checkOptions(owner, options, ['upper']);
  return checkBoolean(owner, 'upper', orDefault(options.upper, false));
}

/** Linear algebra on batches of matrices; see each function. */
export const linalg = {
  /** Vector norm of order `ord` (default 2) over all elements or `dim`. */
  vectorNorm(
    input: Tensor,
    ord = 2,
    dim: number | readonly number[] | null = null,
    options: KeepdimOptions = {},
  ): Tensor {
    checkTensor('linalg.vectorNorm', 'input', input);
    return input.norm(ord, dim, options);
  },

  /** Norm of matrices `[…, R, C]` → `[…]`. Default `'fro'`. */
  matrixNorm(input: Tensor, ord: MatrixNorm = 'fro', options: KeepdimOptions = {}): Tensor {
    const name = 'linalg.matrixNorm';
    const keepdim = keepdimOf(name, options);
    const known = typeof ord === 'string' ? ['fro', 'nuc'] : [1, -1, 2, -2, Infinity, -Infinity];
    if (!(known as unknown[]).includes(ord)) {
      throw new RangeError(
        `${name}: ord must be 'fro', 'nuc', ±1, ±2 or ±Infinity, got ${describe(ord)}`,
      );
    }
    const op = `aten::linalg_matrix_norm${typeof ord === 'string' ? '.str_ord' : ''}`;
    return onMatrix(name, input, false, () => callTensor(op, input, ord, [-2, -1], keepdim));
  },

  /** Vector norm without `ord` or for one dimension, else a matrix norm, like `torch.linalg.norm`. */
  norm(
    input: Tensor,
    ord?: MatrixNorm | null,
    dim?: number | readonly number[] | null,
    options: KeepdimOptions = {},
  ): Tensor {
    const name = 'linalg.norm';
    checkTensor(name, 'input', input);
    const keepdim = keepdimOf(name, options);
    const dims = dim === undefined || dim === null ? null : checkDims(name, 'dim', dim);
    const op = `aten::linalg_norm${typeof ord === 'string' ? '.ord_str' : ''}`;
    return explained(
      () => callTensor(op, input, ord ?? null, dims, keepdim),
      () => checkFloating(name, input.dtype),
    );
  },

  /** Inverse of square matrices. @throws TorchError if one is singular */
  inv(input: Tensor): Tensor {
    return onMatrix('linalg.inv', input, true, () => callTensor('aten::linalg_inv', input));
  },

  /** Moore-Penrose pseudo-inverse: `[…, R, C]` → `[…, C, R]`. */
  pinv(input: Tensor): Tensor {
    return onMatrix('linalg.pinv', input, false, () =>
      callTensor('aten::linalg_pinv', input, 1e-15),
    );
  },

  /** Determinant: `[…, N, N]` → `[…]`. */
  det(input: Tensor): Tensor {
    return onMatrix('linalg.det', input, true, () => callTensor('aten::linalg_det', input));
  },

  /** Sign and logarithm of the absolute value of the determinant. */
  slogdet(input: Tensor): { sign: Tensor; logabsdet: Tensor } {
    return onMatrix('linalg.slogdet', input, true, () => {
      const [sign, logabsdet] = callTensors('aten::linalg_slogdet', input);
      return { sign, logabsdet } as { sign: Tensor; logabsdet: Tensor };
    });
  },

  /** Solves `input · X = other`: `[…, N, N]`, `[…, N, K]` or `[…, N]`. @throws TorchError */
  solve(input: Tensor, other: Tensor): Tensor {
    checkTensor('linalg.solve', 'other', other);
    return onMatrix('linalg.solve', input, true, () =>
      callTensor('aten::linalg_solve', input, other),
    );
  },

  /** The `X` that minimizes `|input · X - other|`: `[…, R, C]`, `[…, R, K]` → `[…, C, K]`. */
  lstsq(input: Tensor, other: Tensor): Tensor {
    checkTensor('linalg.lstsq', 'other', other);
    return onMatrix('linalg.lstsq', input, false, () => {
      const [solution, ...rest] = callTensors('aten::linalg_lstsq', input, other);
      for (const tensor of rest) tensor.dispose();
      return solution as Tensor;
    });
  },

  /** Singular values and vectors: `input = U · diag(S) · Vh`. */
  svd(input: Tensor, options: SvdOptions = {}): { U: Tensor; S: Tensor; Vh: Tensor } {
    checkOptions('linalg.svd', options, ['fullMatrices']);
    const { fullMatrices = true } = options;
    checkBoolean('linalg.svd', 'fullMatrices', fullMatrices);
    return onMatrix('linalg.svd', input, false, () => {
      const [U, S, Vh] = callTensors('aten::linalg_svd', input, fullMatrices);
      return { U, S, Vh } as { U: Tensor; S: Tensor; Vh: Tensor };
    });
  },

  /** Singular values in descending order: `[…, R, C]` → `[…, min(R, C)]`. */
  svdvals(input: Tensor): Tensor {
    return onMatrix('linalg.svdvals', input, false, () =>
      callTensor('aten::linalg_svdvals', input),
    );
  },

  /** `input = Q · R` with orthonormal columns in `Q` and upper triangular `R` (reduced form). */
  qr(input: Tensor): { Q: Tensor; R: Tensor } {
    return onMatrix('linalg.qr', input, false, () => {
      const [Q, R] = callTensors('aten::linalg_qr', input);
      return { Q, R } as { Q: Tensor; R: Tensor };
    });
  },

  /** The lower triangular `L` of `input = L · Lᵀ`. @throws TorchError unless positive-definite */
  cholesky(input: Tensor, options: UpperOptions = {}): Tensor {
    const upper = upperOf('linalg.cholesky', options);
    return onMatrix('linalg.cholesky', input, true, () =>
      callTensor('aten::linalg_cholesky', input, { upper }),
    );
  },

  /** Eigenvalues (ascending) and eigenvectors (columns) of symmetric matrices. */
  eigh(input: Tensor, options: UpperOptions = {}): { eigenvalues: Tensor; eigenvectors: Tensor } {
    const side = upperOf('linalg.eigh', options) ? 'U' : 'L';
    return onMatrix('linalg.eigh', input, true, () => {
      const [eigenvalues, eigenvectors] = callTensors('aten::linalg_eigh', input, side);
      return { eigenvalues, eigenvectors } as { eigenvalues: Tensor; eigenvectors: Tensor };
    });
  },

  /** Eigenvalues of symmetric matrices, ascending: `[…, N, N]` → `[…, N]`. */
  eigvalsh(input: Tensor, options: UpperOptions = {}): Tensor {
    const side = upperOf('linalg.eigvalsh', options) ? 'U' : 'L';
    return onMatrix('linalg.eigvalsh', input, true, () =>
      callTensor('aten::linalg_eigvalsh', input, side),
    );
  },

  /** Number of singular values that are not zero within rounding: `[…, R, C]` → `[…]`, int64. */
  matrixRank(input: Tensor): Tensor {
    return onMatrix('linalg.matrixRank', input, false, () =>
      call('aten::linalg_matrix_rank.atol_rtol_float', input),
    ) as Tensor;
  },

  /** The `n`-th power of square matrices; a power of the inverse if `n` is negative. */
  matrixPower(input: Tensor, n: number): Tensor {
    checkIndex('linalg.matrixPower', 'n', n);
    return onMatrix('linalg.matrixPower', input, true, () =>
      callTensor('aten::linalg_matrix_power', input, n),
    );
  },

  /** Cross product of vectors of 3 elements along `dim` (default -1). */
  cross(input: Tensor, other: Tensor, dim = -1): Tensor {
    checkTensor('linalg.cross', 'input', input);
    checkTensor('linalg.cross', 'other', other);
    checkInteger('linalg.cross', 'dim', dim, Number.MIN_SAFE_INTEGER);
    return callTensor('aten::linalg_cross', input, other, { dim });
  },
} as const;
