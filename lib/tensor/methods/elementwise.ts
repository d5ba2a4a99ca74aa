/** Methods of Tensor that compute each element on its own, with PyTorch's broadcasting. */
import { checkOptions, describe } from '../../runtime/options.js';
import {
  checkBroadcast,
  checkBroadcastTo,
  checkNumber,
  checkOperand,
  checkScalar,
  checkTensor,
  explained,
  type Scalar,
} from '../check.js';
import { call, callTensor } from '../dispatch.js';
import { Tensor } from '../tensor.js';

export interface AlphaOptions {
  /** Factor of the other operand. Default 1. */
  alpha?: Scalar;
}

export interface DivOptions {
  /** Rounds towards zero or down; default: true division, which gives floats for integers. */
  roundingMode?: 'trunc' | 'floor';
}

/** `self op other` through the overload for tensors or for numbers. */
function binary(
  self: Tensor,
  other: Tensor | Scalar,
  name: string,
  tensorOp: string,
  scalarOp: string,
  named?: Record<string, unknown>,
): Tensor {
  checkOperand(name, 'other', other);
  const op = other instanceof Tensor ? tensorOp : scalarOp;
  return explained(
    () => (named === undefined ? callTensor(op, self, other) : callTensor(op, self, other, named)),
    () => {
      if (other instanceof Tensor) {
        checkBroadcast(name, ['the tensor', 'other'], self.shape, other.shape);
      }
    },
  );
}

/** The same in place; the result has the tensor's own shape and dtype. */
function binaryInPlace(
  self: Tensor,
  other: Tensor | Scalar,
  name: string,
  tensorOp: string,
  scalarOp: string,
  named?: Record<string, unknown>,
): Tensor {
  checkOperand(name, 'other', other);
  const op = other instanceof Tensor ? tensorOp : scalarOp;
  explained(
    () => (named === undefined ? call(op, self, other) : call(op, self, other, named)),
    () => {
      if (other instanceof Tensor) checkBroadcastTo(name, 'other', other.shape, self.shape);
    },
  );
  return self;
}

function alphaArgument(name: string, options?: AlphaOptions): { alpha: Scalar } | undefined {
  if (options === undefined) return undefined;
  checkOptions(name, options, ['alpha']);
  if (options.alpha === undefined) return undefined;
  checkScalar(name, 'alpha', options.alpha);
  return { alpha: options.alpha };
}

function divArgument(name: string, options?: DivOptions): { rounding_mode: string } | undefined {
  checkOptions(name, options, ['roundingMode']);
  const mode = options?.roundingMode;
  if (mode === undefined) return undefined;
  if (mode !== 'trunc' && mode !== 'floor') {
    throw new TypeError(`${name}: roundingMode must be 'trunc' or 'floor', got ${describe(mode)}`);
  }
  return { rounding_mode: mode };
}

export abstract class ElementwiseMethods {
  /** `this + alpha · other`. */
  add(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('add', options);
    return binary(this, other, 'add', 'aten::add.Tensor', 'aten::add.Scalar', alpha);
  }

  /** `this - alpha · other`. */
  sub(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('sub', options);
    return binary(this, other, 'sub', 'aten::sub.Tensor', 'aten::sub.Scalar', alpha);
  }

  /** `this · other`, element by element. */
  mul(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'mul', 'aten::mul.Tensor', 'aten::mul.Scalar');
  }

  /** `this / other`. Integers give floats unless a `roundingMode` is given. */
  div(this: Tensor, other: Tensor | Scalar, options?: DivOptions): Tensor {
    const mode = divArgument('div', options);
    return mode === undefined
      ? binary(this, other, 'div', 'aten::div.Tensor', 'aten::div.Scalar')
      : binary(this, other, 'div', 'aten::div.Tensor_mode', 'aten::div.Scalar_mode', mode);
  }

  /** Remainder with the sign of `other`, as Python's `%`. */
  remainder(this: Tensor, other: Tensor | Scalar): Tensor {
    const [tensorOp, scalarOp] = ['aten::remainder.Tensor', 'aten::remainder.Scalar'];
    return binary(this, other, 'remainder', tensorOp, scalarOp);
  }

  /** `this` to the power of `exponent`. */
  pow(this: Tensor, exponent: Tensor | Scalar): Tensor {
    const [tensorOp, scalarOp] = ['aten::pow.Tensor_Tensor', 'aten::pow.Tensor_Scalar'];
    return binary(this, exponent, 'pow', tensorOp, scalarOp);
  }

  /** The larger of both, NaN if one is. */
  maximum(this: Tensor, other: Tensor): Tensor {
    checkTensor('maximum', 'other', other);
    return binary(this, other, 'maximum', 'aten::maximum', 'aten::maximum');
  }

  /** The smaller of both, NaN if one is. */
  minimum(this: Tensor, other: Tensor): Tensor {
    checkTensor('minimum', 'other', other);
    return binary(this, other, 'minimum', 'aten::minimum', 'aten::minimum');
  }

  /** Adds `alpha · other` in place; returns this tensor. */
  add_(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('add_', options);
    return binaryInPlace(this, other, 'add_', 'aten::add_.Tensor', 'aten::add_.Scalar', alpha);
  }

  /** Subtracts `alpha · other` in place; returns this tensor. */
  sub_(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('sub_', options);
    return binaryInPlace(this, other, 'sub_', 'aten::sub_.Tensor', 'aten::sub_.Scalar', alpha);
  }

  /** Multiplies in place; returns this tensor. */
  mul_(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryInPlace(this, other, 'mul_', 'aten::mul_.Tensor', 'aten::mul_.Scalar');
  }

  /** Divides in place; returns this tensor. */
  div_(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryInPlace(this, other, 'div_', 'aten::div_.Tensor', 'aten::div_.Scalar');
  }

  /** Sets every element to 0; returns this tensor. */
  zero_(this: Tensor): Tensor {
    call('aten::zero_', this);
    return this;
  }

  /** Sets every element to `value` (a number or a 0-dim tensor); returns this tensor. */
  fill_(this: Tensor, value: Tensor | Scalar): Tensor {
    checkOperand('fill_', 'value', value);
    call(value instanceof Tensor ? 'aten::fill_.Tensor' : 'aten::fill_.Scalar', this, value);
    return this;
  }

  /** Copies `source`, broadcast and converted to this tensor's dtype; returns this tensor. */
  copy_(this: Tensor, source: Tensor): Tensor {
    checkTensor('copy_', 'source', source);
    explained(
      () => call('aten::copy_', this, source),
      () => checkBroadcastTo('copy_', 'source', source.shape, this.shape),
    );
    return this;
  }

  /**
   * Limits elements to `[min, max]`; null leaves one side open.
   *
   * @throws TypeError when both are missing
   */
  clamp(this: Tensor, min?: Scalar | null, max?: Scalar | null): Tensor {
    const [low, high] = [min ?? null, max ?? null];
    if (low === null && high === null) {
      throw new TypeError('clamp: give min, max or both; got neither');
    }
    if (low !== null) checkScalar('clamp', 'min', low);
    if (high !== null) checkScalar('clamp', 'max', high);
    return callTensor('aten::clamp', this, low, high);
  }

  /** `-this`. */
  neg(this: Tensor): Tensor {
    return callTensor('aten::neg', this);
  }

  /** Absolute value. */
  abs(this: Tensor): Tensor {
    return callTensor('aten::abs', this);
  }

  /** -1, 0 or 1. */
  sign(this: Tensor): Tensor {
    return callTensor('aten::sign', this);
  }

  /** `e` to the power of each element. */
  exp(this: Tensor): Tensor {
    return callTensor('aten::exp', this);
  }

  /** Natural logarithm. */
  log(this: Tensor): Tensor {
    return callTensor('aten::log', this);
  }

  /** Square root. */
  sqrt(this: Tensor): Tensor {
    return callTensor('aten::sqrt', this);
  }

  /** `1 / sqrt(this)`. */
  rsqrt(this: Tensor): Tensor {
    return callTensor('aten::rsqrt', this);
  }

  /** `this²`. */
  square(this: Tensor): Tensor {
    return callTensor('aten::square', this);
  }

  /** `1 / this`. */
  reciprocal(this: Tensor): Tensor {
    return callTensor('aten::reciprocal', this);
  }

  /** Sine, of radians. */
  sin(this: Tensor): Tensor {
    return callTensor('aten::sin', this);
  }

  /** Cosine, of radians. */
  cos(this: Tensor): Tensor {
    return callTensor('aten::cos', this);
  }

  /** Hyperbolic tangent. */
  tanh(this: Tensor): Tensor {
    return callTensor('aten::tanh', this);
  }

  /** `1 / (1 + exp(-this))`. */
  sigmoid(this: Tensor): Tensor {
    return callTensor('aten::sigmoid', this);
  }

  /** `max(this, 0)`. */
  relu(this: Tensor): Tensor {
    return callTensor('aten::relu', this);
  }

  /** Rounds down. */
  floor(this: Tensor): Tensor {
    return callTensor('aten::floor', this);
  }

  /** Rounds up. */
  ceil(this: Tensor): Tensor {
    return callTensor('aten::ceil', this);
  }

  /** Rounds to the nearest integer, halves to the even one. */
  round(this: Tensor): Tensor {
    return callTensor('aten::round', this);
  }

  /** Draws every element from `[from, to)` in place; returns this tensor. Default 0, 1. */
  uniform_(this: Tensor, from = 0, to = 1): Tensor {
    checkNumber('uniform_', 'from', from);
    checkNumber('uniform_', 'to', to);
    if (!(from <= to)) {
      throw new RangeError(`uniform_: from must not exceed to, got ${from} and ${to}`);
    }
    call('aten::uniform_', this, from, to);
    return this;
  }

  /** Draws every element from the normal distribution in place; returns this tensor. */
  normal_(this: Tensor, mean = 0, std = 1): Tensor {
    checkNumber('normal_', 'mean', mean);
    checkNumber('normal_', 'std', std);
    if (!(std >= 0)) throw new RangeError(`normal_: std must not be negative, got ${std}`);
    call('aten::normal_', this, mean, std);
    return this;
  }
}
