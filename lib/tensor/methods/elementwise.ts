/** Elementwise methods of Tensor, with PyTorch's broadcasting. */
import { checkChoice, checkOptions } from '../../runtime/arguments.js';
import {
  checkBroadcastTo,
  checkIndex,
  checkOperand,
  checkScalar,
  checkTensor,
  explained,
  type Scalar,
} from '../check.js';
import { call, callTensor } from '../dispatch.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';
import { binary, binaryInPlace, binaryOfTensors, overloads } from './binary.js';

/** Options of {@link Tensor.add} and {@link Tensor.sub}, also in place. */
export interface AlphaOptions {
  /** Factor of the other operand. Default 1. */
  alpha?: Scalar;
}

/** Options of {@link Tensor.div}. */
export interface DivOptions {
  /** Round towards zero or down; default: true division, which returns floats for integers. */
  roundingMode?: 'trunc' | 'floor';
}

/** Options of {@link Tensor.round}. */
export interface RoundOptions {
  /** Digits after the decimal point; negative: before it. Default 0. */
  decimals?: number;
}

const divWithMode = { tensor: 'aten::div.Tensor_mode', scalar: 'aten::div.Scalar_mode' };
const powOps = { tensor: 'aten::pow.Tensor_Tensor', scalar: 'aten::pow.Tensor_Scalar' };

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
  return { rounding_mode: checkChoice(name, 'roundingMode', mode, ['trunc', 'floor']) };
}

/**
 * Elementwise arithmetic. Each method throws TypeError for an argument of a wrong type or dtype,
 * RangeError for shapes that cannot be broadcast, and TorchError for tensors on different devices or
 * a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class ElementwiseMethods {
  /** `this + alpha · other`. */
  add(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('add', options);
    return binary(this, other, 'add', overloads('add'), alpha);
  }

  /** `this - alpha · other`. */
  sub(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('sub', options);
    return binary(this, other, 'sub', overloads('sub'), alpha);
  }

  /** `this · other`, elementwise. */
  mul(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'mul', overloads('mul'));
  }

  /** `this / other`. Returns floats for integers unless there is a `roundingMode`. */
  div(this: Tensor, other: Tensor | Scalar, options?: DivOptions): Tensor {
    const mode = divArgument('div', options);
    return mode === undefined
      ? binary(this, other, 'div', overloads('div'))
      : binary(this, other, 'div', divWithMode, mode);
  }

  /** Remainder with the sign of `other`, like Python's `%`. */
  remainder(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'remainder', overloads('remainder'));
  }

  /** `this` to the power of `exponent`. */
  pow(this: Tensor, exponent: Tensor | Scalar): Tensor {
    return binary(this, exponent, 'pow', powOps);
  }

  /** The larger of both; NaN if either is. */
  maximum(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'maximum', 'aten::maximum');
  }

  /** The smaller of both; NaN if either is. */
  minimum(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'minimum', 'aten::minimum');
  }

  /** Adds `alpha · other` in place; returns this tensor. */
  add_(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('add_', options);
    return binaryInPlace(this, other, 'add_', overloads('add_'), alpha);
  }

  /** Subtracts `alpha · other` in place; returns this tensor. */
  sub_(this: Tensor, other: Tensor | Scalar, options?: AlphaOptions): Tensor {
    const alpha = alphaArgument('sub_', options);
    return binaryInPlace(this, other, 'sub_', overloads('sub_'), alpha);
  }

  /** Multiplies in place; returns this tensor. */
  mul_(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryInPlace(this, other, 'mul_', overloads('mul_'));
  }

  /** Divides in place; returns this tensor. */
  div_(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryInPlace(this, other, 'div_', overloads('div_'));
  }

  /** Sets every element to 0; returns this tensor. */
  zero_(this: Tensor): Tensor {
    call('aten::zero_', this);
    return this;
  }

  /** Sets every element to `value` (a number or a 0-dim tensor); returns this tensor. */
  fill_(this: Tensor, value: Tensor | Scalar): Tensor {
    checkOperand('fill_', 'value', value);
    call(isTensor(value) ? 'aten::fill_.Tensor' : 'aten::fill_.Scalar', this, value);
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
   * Clamps elements to `[min, max]`; null: no limit.
   *
   * @throws TypeError if both are missing
   */
  clamp(this: Tensor, min?: Scalar | null, max?: Scalar | null): Tensor {
    const [low, high] = [min ?? null, max ?? null];
    if (low === null && high === null) {
      throw new TypeError('clamp: pass min, max or both; got neither');
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

  /** Sine of angles in radians. */
  sin(this: Tensor): Tensor {
    return callTensor('aten::sin', this);
  }

  /** Cosine of angles in radians. */
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

  /** Rounds to the nearest integer, or to `decimals` digits after the decimal point; half to even. */
  round(this: Tensor, options: RoundOptions = {}): Tensor {
    checkOptions('round', options, ['decimals']);
    const { decimals = 0 } = options;
    checkIndex('round', 'decimals', decimals);
    if (decimals === 0) return callTensor('aten::round', this);
    return callTensor('aten::round.decimals', this, { decimals });
  }
}
