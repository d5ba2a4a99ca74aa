/** Comparison and logical methods of Tensor. Results are bool tensors. */
import { checkBoolean, checkNumber, checkOptions } from '../../runtime/arguments.js';
import { checkBroadcast, checkTensor, explained, type Scalar } from '../check.js';
import { call, callTensor } from '../dispatch.js';
import type { Tensor } from '../tensor.js';
import { binary, binaryOfTensors, overloads } from './binary.js';

/** Options of {@link Tensor.allclose} and {@link Tensor.isclose}. */
export interface AllcloseOptions {
  /** Relative tolerance. Default 1e-5, as in PyTorch. */
  rtol?: number;
  /** Absolute tolerance. Default 1e-8, as in PyTorch. */
  atol?: number;
  /** Whether NaN equals NaN. Default false. */
  equalNan?: boolean;
}

/** Checks the options; returns them in the order of the schema. */
function closeness(
  owner: string,
  other: unknown,
  options: AllcloseOptions,
): [rtol: number, atol: number, equalNan: boolean] {
  checkTensor(owner, 'other', other);
  checkOptions(owner, options, ['rtol', 'atol', 'equalNan']);
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options;
  checkNumber(owner, 'rtol', rtol);
  checkNumber(owner, 'atol', atol);
  checkBoolean(owner, 'equalNan', equalNan);
  return [rtol, atol, equalNan];
}

function checkComparable(owner: string, self: Tensor, other: Tensor): void {
  checkBroadcast(owner, ['the tensor', 'other'], self.shape, other.shape);
  if (self.dtype !== other.dtype) {
    throw new TypeError(
      `${owner}: both must have the same dtype, got ${self.dtype} and ${other.dtype}; ` +
        'convert one with to({ dtype })',
    );
  }
}

/**
 * Comparison and logical methods. Each throws TypeError for an argument of a wrong type or dtype,
 * RangeError for shapes that cannot be broadcast, and TorchError for tensors on different devices or
 * a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class ComparisonMethods {
  /** `this = other`, elementwise. */
  eq(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'eq', overloads('eq'));
  }

  /** `this ≠ other`. */
  ne(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'ne', overloads('ne'));
  }

  /** `this < other`. */
  lt(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'lt', overloads('lt'));
  }

  /** `this ≤ other`. */
  le(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'le', overloads('le'));
  }

  /** `this > other`. */
  gt(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'gt', overloads('gt'));
  }

  /** `this ≥ other`. */
  ge(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'ge', overloads('ge'));
  }

  /** True where an element is 0 or false. */
  logicalNot(this: Tensor): Tensor {
    return callTensor('aten::logical_not', this);
  }

  /** True where both are non-zero. */
  logicalAnd(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'logicalAnd', 'aten::logical_and');
  }

  /** True where at least one is non-zero. */
  logicalOr(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'logicalOr', 'aten::logical_or');
  }

  /** True where exactly one is non-zero. */
  logicalXor(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'logicalXor', 'aten::logical_xor');
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

  /** Whether shapes and elements are equal (NaN is not equal to NaN). Dtypes must be equal. */
  equal(this: Tensor, other: Tensor): boolean {
    checkTensor('equal', 'other', other);
    return call('aten::equal', this, other) as boolean;
  }

  /** Whether `|this - other| ≤ atol + rtol · |other|` everywhere. */
  allclose(this: Tensor, other: Tensor, options: AllcloseOptions = {}): boolean {
    const limits = closeness('allclose', other, options);
    return explained(
      () => call('aten::allclose', this, other, ...limits) as boolean,
      () => checkComparable('allclose', this, other),
    );
  }

  /** True where `|this - other| ≤ atol + rtol · |other|`. */
  isclose(this: Tensor, other: Tensor, options: AllcloseOptions = {}): Tensor {
    const limits = closeness('isclose', other, options);
    return explained(
      () => callTensor('aten::isclose', this, other, ...limits),
      () => checkComparable('isclose', this, other),
    );
  }

  /** True where an element is one of `testElements`, which may have any shape. */
  isin(this: Tensor, testElements: Tensor): Tensor {
    checkTensor('isin', 'testElements', testElements);
    return callTensor('aten::isin.Tensor_Tensor', this, testElements);
  }

  /** True where an element is Infinity. */
  isposinf(this: Tensor): Tensor {
    return callTensor('aten::isposinf', this);
  }

  /** True where an element is -Infinity. */
  isneginf(this: Tensor): Tensor {
    return callTensor('aten::isneginf', this);
  }
}
