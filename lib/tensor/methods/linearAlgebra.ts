/** Methods of Tensor that multiply matrices. */
import { checkNumber, checkOptions } from '../../runtime/arguments.js';
import {
  checkBroadcast,
  checkBroadcastTo,
  checkScalar,
  checkTensor,
  explained,
  formatShape,
  type Scalar,
} from '../check.js';
import { callTensor } from '../dispatch.js';
import type { Tensor } from '../tensor.js';

/** Options of {@link Tensor.addmm} and {@link Tensor.baddbmm}. */
export interface ProductOptions {
  /** Factor of the tensor itself. Default 1. */
  beta?: Scalar;
  /** Factor of the product. Default 1. */
  alpha?: Scalar;
}

/** @throws RangeError unless both have `ndim` dimensions and the inner sizes are equal */
function checkMatrices(owner: string, a: readonly number[], b: readonly number[], ndim: number) {
  const form = ndim === 2 ? '[R, K] and [K, C]' : '[B, R, K] and [B, K, C]';
  const batchesAgree = ndim === 2 || a[0] === b[0];
  if (a.length !== ndim || b.length !== ndim || a.at(-1) !== b.at(-2) || !batchesAgree) {
    throw new RangeError(
      `${owner}: needs shapes ${form}, got ${formatShape(a)} and ${formatShape(b)}`,
    );
  }
}

function checkMatmul(a: readonly number[], b: readonly number[]): void {
  if (a.length === 0 || b.length === 0) {
    throw new RangeError('matmul: a 0-dim tensor is not a matrix; use mul');
  }
  const inner = b.length === 1 ? b[0] : b.at(-2);
  if (a.at(-1) !== inner) {
    throw new RangeError(
      `matmul: the inner sizes must agree, got ${formatShape(a)} and ${formatShape(b)}: ` +
        `${a.at(-1)} and ${inner}`,
    );
  }
  checkBroadcast(
    'matmul',
    ['batch dimensions', 'other batch dimensions'],
    a.slice(0, -2),
    b.slice(0, -2),
  );
}

/** @throws RangeError unless both are vectors, of equal size if `sameSize` is true */
function checkVectors(
  owner: string,
  a: readonly number[],
  b: readonly number[],
  sameSize: boolean,
): void {
  if (a.length !== 1 || b.length !== 1 || (sameSize && a[0] !== b[0])) {
    const form = sameSize ? 'two vectors of one size' : 'two vectors';
    throw new RangeError(`${owner}: needs ${form}, got ${formatShape(a)} and ${formatShape(b)}`);
  }
}

function addedProduct(
  self: Tensor,
  name: 'addmm' | 'baddbmm',
  mat1: Tensor,
  mat2: Tensor,
  options: ProductOptions,
): Tensor {
  checkTensor(name, 'mat1', mat1);
  checkTensor(name, 'mat2', mat2);
  checkOptions(name, options, ['beta', 'alpha']);
  const { beta = 1, alpha = 1 } = options;
  checkScalar(name, 'beta', beta);
  checkScalar(name, 'alpha', alpha);
  return explained(
    () => callTensor(`aten::${name}`, self, mat1, mat2, { beta, alpha }),
    () => {
      const [a, b] = [mat1.shape, mat2.shape];
      checkMatrices(name, a, b, name === 'addmm' ? 2 : 3);
      checkBroadcastTo(name, 'the tensor', self.shape, [...a.slice(0, -1), b.at(-1) ?? 0]);
    },
  );
}

/**
 * Matrix products. Each method throws TypeError for an argument of a wrong type or dtype, RangeError
 * for shapes that do not match, and TorchError for tensors on different devices or a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class LinearAlgebraMethods {
  /** Matrix product `[…, R, K] · […, K, C]` → `[…, R, C]`; vectors as in PyTorch. */
  matmul(this: Tensor, other: Tensor): Tensor {
    checkTensor('matmul', 'other', other);
    return explained(
      () => callTensor('aten::matmul', this, other),
      () => checkMatmul(this.shape, other.shape),
    );
  }

  /** Matrix product `[R, K] · [K, C]` → `[R, C]`. */
  mm(this: Tensor, other: Tensor): Tensor {
    checkTensor('mm', 'other', other);
    return explained(
      () => callTensor('aten::mm', this, other),
      () => checkMatrices('mm', this.shape, other.shape, 2),
    );
  }

  /** Matrix product of each pair in a batch: `[B, R, K] · [B, K, C]` → `[B, R, C]`. */
  bmm(this: Tensor, other: Tensor): Tensor {
    checkTensor('bmm', 'other', other);
    return explained(
      () => callTensor('aten::bmm', this, other),
      () => checkMatrices('bmm', this.shape, other.shape, 3),
    );
  }

  /** Dot product of two vectors: `[N] · [N]` → a 0-dim tensor. */
  dot(this: Tensor, other: Tensor): Tensor {
    checkTensor('dot', 'other', other);
    return explained(
      () => callTensor('aten::dot', this, other),
      () => checkVectors('dot', this.shape, other.shape, true),
    );
  }

  /** Outer product of two vectors: `[R]`, `[C]` → `[R, C]`. */
  outer(this: Tensor, other: Tensor): Tensor {
    checkTensor('outer', 'other', other);
    return explained(
      () => callTensor('aten::outer', this, other),
      () => checkVectors('outer', this.shape, other.shape, false),
    );
  }

  /** Matrix-vector product: `[R, K] · [K]` → `[R]`. */
  mv(this: Tensor, vector: Tensor): Tensor {
    checkTensor('mv', 'vector', vector);
    return explained(
      () => callTensor('aten::mv', this, vector),
      () => {
        const [a, b] = [this.shape, vector.shape];
        if (a.length !== 2 || b.length !== 1 || a[1] !== b[0]) {
          throw new RangeError(
            `mv: needs shapes [R, K] and [K], got ${formatShape(a)} and ${formatShape(b)}`,
          );
        }
      },
    );
  }

  /** `beta · this + alpha · mat1 · mat2` for matrices `[R, K] · [K, C]`; this tensor is broadcast. */
  addmm(this: Tensor, mat1: Tensor, mat2: Tensor, options: ProductOptions = {}): Tensor {
    return addedProduct(this, 'addmm', mat1, mat2, options);
  }

  /** {@link Tensor.addmm} for batches `[B, R, K] · [B, K, C]`. */
  baddbmm(this: Tensor, mat1: Tensor, mat2: Tensor, options: ProductOptions = {}): Tensor {
    return addedProduct(this, 'baddbmm', mat1, mat2, options);
  }

  /** Kronecker product: each element of this tensor times all of `other`. */
  kron(this: Tensor, other: Tensor): Tensor {
    checkTensor('kron', 'other', other);
    return callTensor('aten::kron', this, other);
  }

  /** Distances between all pairs of rows: `[…, P, D]`, `[…, Q, D]` → `[…, P, Q]`. Default p 2. */
  cdist(this: Tensor, other: Tensor, p = 2): Tensor {
    checkTensor('cdist', 'other', other);
    checkNumber('cdist', 'p', p);
    return explained(
      () => callTensor('aten::cdist', this, other, p),
      () => {
        const [a, b] = [this.shape, other.shape];
        if (a.length < 2 || b.length < 2 || a.at(-1) !== b.at(-1)) {
          throw new RangeError(
            `cdist: needs shapes […, P, D] and […, Q, D], got ${formatShape(a)} and ${formatShape(b)}`,
          );
        }
      },
    );
  }
}
