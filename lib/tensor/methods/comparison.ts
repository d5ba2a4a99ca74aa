/** Methods of Tensor that compare and combine truth values. Results are bool tensors. */
import { checkOptions } from '../../runtime/options.js';
import {
  checkBoolean,
  checkBroadcast,
  checkNumber,
  checkOperand,
  checkTensor,
  explained,
  type Scalar,
} from '../check.js';
import { call, callTensor } from '../dispatch.js';
import { Tensor } from '../tensor.js';
import { ElementwiseMethods } from './elementwise.js';

export interface AllcloseOptions {
  /** Part of `other`'s magnitude that may differ. Default 1e-5, as in PyTorch. */
  rtol?: number;
  /** Difference that is allowed anyway. Default 1e-8, as in PyTorch. */
  atol?: number;
  /** Whether NaN equals NaN. Default false. */
  equalNan?: boolean;
}

function compare(
  self: Tensor,
  other: Tensor | Scalar,
  name: string,
  tensorOp: string,
  scalarOp: string,
): Tensor {
  checkOperand(name, 'other', other);
  return explained(
    () => callTensor(other instanceof Tensor ? tensorOp : scalarOp, self, other),
    () => {
      if (other instanceof Tensor) {
        checkBroadcast(name, ['the tensor', 'other'], self.shape, other.shape);
      }
    },
  );
}

export abstract class ComparisonMethods extends ElementwiseMethods {
  /** `this = other`, element by element. */
  eq(this: Tensor, other: Tensor | Scalar): Tensor {
    return compare(this, other, 'eq', 'aten::eq.Tensor', 'aten::eq.Scalar');
  }

  /** `this ≠ other`. */
  ne(this: Tensor, other: Tensor | Scalar): Tensor {
    return compare(this, other, 'ne', 'aten::ne.Tensor', 'aten::ne.Scalar');
  }

  /** `this < other`. */
  lt(this: Tensor, other: Tensor | Scalar): Tensor {
    return compare(this, other, 'lt', 'aten::lt.Tensor', 'aten::lt.Scalar');
  }

  /** `this ≤ other`. */
  le(this: Tensor, other: Tensor | Scalar): Tensor {
    return compare(this, other, 'le', 'aten::le.Tensor', 'aten::le.Scalar');
  }

  /** `this > other`. */
  gt(this: Tensor, other: Tensor | Scalar): Tensor {
    return compare(this, other, 'gt', 'aten::gt.Tensor', 'aten::gt.Scalar');
  }

  /** `this ≥ other`. */
  ge(this: Tensor, other: Tensor | Scalar): Tensor {
    return compare(this, other, 'ge', 'aten::ge.Tensor', 'aten::ge.Scalar');
  }

  /** True where an element is 0 or false. */
  logicalNot(this: Tensor): Tensor {
    return callTensor('aten::logical_not', this);
  }

  /** True where both are non-zero. */
  logicalAnd(this: Tensor, other: Tensor): Tensor {
    checkTensor('logicalAnd', 'other', other);
    return compare(this, other, 'logicalAnd', 'aten::logical_and', 'aten::logical_and');
  }

  /** True where at least one is non-zero. */
  logicalOr(this: Tensor, other: Tensor): Tensor {
    checkTensor('logicalOr', 'other', other);
    return compare(this, other, 'logicalOr', 'aten::logical_or', 'aten::logical_or');
  }

  /** True where an element is NaN. */
  isnan(this: Tensor): Tensor {
    return callTensor('aten::isnan', this);
  }

  /** True where an element is Infinity or -Infinity. */
  isinf(this: Tensor): Tensor {
    return callTensor('aten::isinf', this);
  }

  /** True where an element is neither NaN nor infinite. */
  isfinite(this: Tensor): Tensor {
    return callTensor('aten::isfinite', this);
  }

  /** Whether both have the same shape and elements (NaN differs from NaN). Dtypes must agree. */
  equal(this: Tensor, other: Tensor): boolean {
    checkTensor('equal', 'other', other);
    return call('aten::equal', this, other) as boolean;
  }

  /** Whether `|this - other| ≤ atol + rtol · |other|` everywhere. */
  allclose(this: Tensor, other: Tensor, options: AllcloseOptions = {}): boolean {
    checkTensor('allclose', 'other', other);
    checkOptions('allclose', options, ['rtol', 'atol', 'equalNan']);
    const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options;
    checkNumber('allclose', 'rtol', rtol);
    checkNumber('allclose', 'atol', atol);
    checkBoolean('allclose', 'equalNan', equalNan);
    return explained(
      () => call('aten::allclose', this, other, rtol, atol, equalNan) as boolean,
      () => checkBroadcast('allclose', ['the tensor', 'other'], this.shape, other.shape),
    );
  }
}
