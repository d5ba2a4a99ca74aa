/** Methods of Tensor that multiply matrices. */
import { checkBroadcast, checkTensor, explained, formatShape } from '../check.js';
import { callTensor } from '../dispatch.js';
import type { Tensor } from '../tensor.js';
import { IndexingMethods } from './indexing.js';

/** @throws RangeError unless both have `ndim` dimensions and the inner sizes agree */
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
    throw new RangeError('matmul: a 0-dim tensor is no matrix; use mul');
  }
  const inner = b.length === 1 ? b[0] : b.at(-2);
  if (a.at(-1) !== inner) {
    throw new RangeError(
      `matmul: the inner sizes must agree, got ${formatShape(a)} and ${formatShape(b)}: ` +
        `${a.at(-1)} against ${inner}`,
    );
  }
  checkBroadcast(
    'matmul',
    ['batch dimensions', 'other batch dimensions'],
    a.slice(0, -2),
    b.slice(0, -2),
  );
}

export abstract class LinearAlgebraMethods extends IndexingMethods {
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
}
