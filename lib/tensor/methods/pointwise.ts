/** More elementwise methods of Tensor: functions, bitwise operations, in-place variants. */
import { checkChoice, checkNumber, checkOptions } from '../../runtime/arguments.js';
import {
  checkBroadcast,
  checkOperand,
  checkScalar,
  checkTensor,
  explained,
  type Scalar,
} from '../check.js';
import { callTensor } from '../dispatch.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';
import { binary, binaryOfBits, binaryOfTensors, checkBits, overloads } from './binary.js';

/** Options of {@link Tensor.gelu}. */
export interface GeluOptions {
  /** `'none'` (default): exact, with the error function; `'tanh'`: the tanh approximation. */
  approximate?: 'none' | 'tanh';
}

/** Options of {@link Tensor.softplus}. */
export interface SoftplusOptions {
  /** Steepness. Default 1. */
  beta?: number;
  /** If `beta · x` is larger, the result is `x`. Default 20, as in PyTorch. */
  threshold?: number;
}

/** Options of {@link Tensor.addcmul} and {@link Tensor.addcdiv}, also in place. */
export interface ValueOptions {
  /** Factor of the product or quotient. Default 1. */
  value?: Scalar;
}

/** Options of {@link Tensor.nanToNum}. */
export interface NanToNumOptions {
  /** Replaces NaN. Default 0. */
  nan?: number;
  /** Replaces Infinity. Default: the largest number of the dtype. */
  posinf?: number | null;
  /** Replaces -Infinity. Default: the lowest number of the dtype. */
  neginf?: number | null;
}

function threeTensors(
  self: Tensor,
  name: string,
  op: string,
  [tensor1, tensor2]: [Tensor, Tensor],
  options: ValueOptions,
): Tensor {
  checkTensor(name, 'tensor1', tensor1);
  checkTensor(name, 'tensor2', tensor2);
  checkOptions(name, options, ['value']);
  const { value = 1 } = options;
  checkScalar(name, 'value', value);
  return explained(
    () => callTensor(op, self, tensor1, tensor2, { value }),
    () => {
      checkBroadcast(name, ['tensor1', 'tensor2'], tensor1.shape, tensor2.shape);
      checkBroadcast(name, ['the tensor', 'tensor1'], self.shape, tensor1.shape);
      checkBroadcast(name, ['the tensor', 'tensor2'], self.shape, tensor2.shape);
    },
  );
}

function lerp(self: Tensor, name: string, op: string, end: Tensor, weight: Tensor | number) {
  checkTensor(name, 'end', end);
  checkOperand(name, 'weight', weight);
  return explained(
    () => callTensor(`${op}.${isTensor(weight) ? 'Tensor' : 'Scalar'}`, self, end, weight),
    () => {
      checkBroadcast(name, ['the tensor', 'end'], self.shape, end.shape);
      if (isTensor(weight)) {
        checkBroadcast(name, ['the tensor', 'weight'], self.shape, weight.shape);
      }
    },
  );
}

/**
 * Elementwise functions. Each method throws TypeError for an argument of a wrong type or dtype,
 * RangeError for shapes that cannot be broadcast, and TorchError for tensors on different devices or
 * a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class PointwiseMethods {
  /** Tangent of angles in radians. */
  tan(this: Tensor): Tensor {
    return callTensor('aten::tan', this);
  }

  /** Inverse sine, in radians. */
  asin(this: Tensor): Tensor {
    return callTensor('aten::asin', this);
  }

  /** Inverse cosine, in radians. */
  acos(this: Tensor): Tensor {
    return callTensor('aten::acos', this);
  }

  /** Inverse tangent, in radians. */
  atan(this: Tensor): Tensor {
    return callTensor('aten::atan', this);
  }

  /** Hyperbolic sine. */
  sinh(this: Tensor): Tensor {
    return callTensor('aten::sinh', this);
  }

  /** Hyperbolic cosine. */
  cosh(this: Tensor): Tensor {
    return callTensor('aten::cosh', this);
  }

  /** 2 to the power of each element. */
  exp2(this: Tensor): Tensor {
    return callTensor('aten::exp2', this);
  }

  /** `exp(this) - 1`, accurate near 0. */
  expm1(this: Tensor): Tensor {
    return callTensor('aten::expm1', this);
  }

  /** Logarithm to base 2. */
  log2(this: Tensor): Tensor {
    return callTensor('aten::log2', this);
  }

  /** Logarithm to base 10. */
  log10(this: Tensor): Tensor {
    return callTensor('aten::log10', this);
  }

  /** `log(1 + this)`, accurate near 0. */
  log1p(this: Tensor): Tensor {
    return callTensor('aten::log1p', this);
  }

  /** Error function: `2/√π · ∫ exp(-t²) dt` from 0 to each element. */
  erf(this: Tensor): Tensor {
    return callTensor('aten::erf', this);
  }

  /** `1 - erf(this)`. */
  erfc(this: Tensor): Tensor {
    return callTensor('aten::erfc', this);
  }

  /** The inverse of {@link Tensor.erf}. */
  erfinv(this: Tensor): Tensor {
    return callTensor('aten::erfinv', this);
  }

  /** `log(this / (1 - this))`, the inverse of {@link Tensor.sigmoid}. */
  logit(this: Tensor): Tensor {
    return callTensor('aten::logit', this);
  }

  /** Rounds towards zero. */
  trunc(this: Tensor): Tensor {
    return callTensor('aten::trunc', this);
  }

  /** The fractional part, which {@link Tensor.trunc} removes. */
  frac(this: Tensor): Tensor {
    return callTensor('aten::frac', this);
  }

  /** `this · sigmoid(this)`, also called swish. */
  silu(this: Tensor): Tensor {
    return callTensor('aten::silu', this);
  }

  /** `this · tanh(softplus(this))`. */
  mish(this: Tensor): Tensor {
    return callTensor('aten::mish', this);
  }

  /** `log(sigmoid(this))`, without overflow. */
  logSigmoid(this: Tensor): Tensor {
    return callTensor('aten::log_sigmoid', this);
  }

  /** `this · Φ(this)` with the cumulative distribution function Φ of the normal distribution. */
  gelu(this: Tensor, options: GeluOptions = {}): Tensor {
    checkOptions('gelu', options, ['approximate']);
    const { approximate = 'none' } = options;
    checkChoice('gelu', 'approximate', approximate, ['none', 'tanh']);
    return callTensor('aten::gelu', this, { approximate });
  }

  /** `log(1 + exp(beta · this)) / beta`. */
  softplus(this: Tensor, options: SoftplusOptions = {}): Tensor {
    checkOptions('softplus', options, ['beta', 'threshold']);
    const { beta = 1, threshold = 20 } = options;
    checkNumber('softplus', 'beta', beta);
    checkNumber('softplus', 'threshold', threshold);
    return callTensor('aten::softplus', this, beta, threshold);
  }

  /** The element if positive, else `negativeSlope` times it. */
  leakyRelu(this: Tensor, negativeSlope = 0.01): Tensor {
    checkNumber('leakyRelu', 'negativeSlope', negativeSlope);
    return callTensor('aten::leaky_relu', this, negativeSlope);
  }

  /** The element if positive, else `alpha · (exp(this) - 1)`. */
  elu(this: Tensor, alpha = 1): Tensor {
    checkNumber('elu', 'alpha', alpha);
    return callTensor('aten::elu', this, alpha);
  }

  /** Replaces NaN and infinities with finite numbers. */
  nanToNum(this: Tensor, options: NanToNumOptions = {}): Tensor {
    checkOptions('nanToNum', options, ['nan', 'posinf', 'neginf']);
    const { nan = 0, posinf = null, neginf = null } = options;
    for (const [name, value] of Object.entries({ nan, posinf, neginf })) {
      if (value !== null) checkNumber('nanToNum', name, value);
    }
    return callTensor('aten::nan_to_num', this, nan, posinf, neginf);
  }

  /** The quotient, rounded down, like Python's `//`. */
  floorDivide(this: Tensor, other: Tensor | Scalar): Tensor {
    const ops = { tensor: 'aten::floor_divide', scalar: 'aten::floor_divide.Scalar' };
    return binary(this, other, 'floorDivide', ops);
  }

  /** Remainder with the sign of this tensor, like C's `fmod`. */
  fmod(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'fmod', overloads('fmod'));
  }

  /** Angle of the point with y from this tensor and x from `other`, from -π to π. */
  atan2(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'atan2', 'aten::atan2');
  }

  /** `√(this² + other²)`. */
  hypot(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'hypot', 'aten::hypot');
  }

  /** `log(exp(this) + exp(other))`, without overflow. */
  logaddexp(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'logaddexp', 'aten::logaddexp');
  }

  /** `this · log(other)`, 0 where this tensor is 0. */
  xlogy(this: Tensor, other: Tensor | Scalar): Tensor {
    const ops = { tensor: 'aten::xlogy.Tensor', scalar: 'aten::xlogy.Scalar_Other' };
    return binary(this, other, 'xlogy', ops);
  }

  /** The magnitude of this tensor with the sign of `other`. */
  copysign(this: Tensor, other: Tensor | Scalar): Tensor {
    return binary(this, other, 'copysign', overloads('copysign'));
  }

  /** The larger of both; if one is NaN, the other. */
  fmax(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'fmax', 'aten::fmax');
  }

  /** The smaller of both; if one is NaN, the other. */
  fmin(this: Tensor, other: Tensor): Tensor {
    return binaryOfTensors(this, other, 'fmin', 'aten::fmin');
  }

  /** Linear interpolation to `end`: `this + weight · (end - this)`. */
  lerp(this: Tensor, end: Tensor, weight: Tensor | number): Tensor {
    return lerp(this, 'lerp', 'aten::lerp', end, weight);
  }

  /** {@link Tensor.lerp} in place; returns this tensor. */
  lerp_(this: Tensor, end: Tensor, weight: Tensor | number): Tensor {
    return lerp(this, 'lerp_', 'aten::lerp_', end, weight);
  }

  /** `this + value · tensor1 · tensor2`. */
  addcmul(this: Tensor, tensor1: Tensor, tensor2: Tensor, options: ValueOptions = {}): Tensor {
    return threeTensors(this, 'addcmul', 'aten::addcmul', [tensor1, tensor2], options);
  }

  /** {@link Tensor.addcmul} in place; returns this tensor. */
  addcmul_(this: Tensor, tensor1: Tensor, tensor2: Tensor, options: ValueOptions = {}): Tensor {
    return threeTensors(this, 'addcmul_', 'aten::addcmul_', [tensor1, tensor2], options);
  }

  /** `this + value · tensor1 / tensor2`. */
  addcdiv(this: Tensor, tensor1: Tensor, tensor2: Tensor, options: ValueOptions = {}): Tensor {
    return threeTensors(this, 'addcdiv', 'aten::addcdiv', [tensor1, tensor2], options);
  }

  /** {@link Tensor.addcdiv} in place; returns this tensor. */
  addcdiv_(this: Tensor, tensor1: Tensor, tensor2: Tensor, options: ValueOptions = {}): Tensor {
    return threeTensors(this, 'addcdiv_', 'aten::addcdiv_', [tensor1, tensor2], options);
  }

  /** Bitwise AND; for bools, logical AND. */
  bitwiseAnd(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryOfBits(this, other, 'bitwiseAnd', overloads('bitwise_and'));
  }

  /** Bitwise OR; for bools, logical OR. */
  bitwiseOr(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryOfBits(this, other, 'bitwiseOr', overloads('bitwise_or'));
  }

  /** Bitwise XOR; for bools, logical XOR. */
  bitwiseXor(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryOfBits(this, other, 'bitwiseXor', overloads('bitwise_xor'));
  }

  /** Bitwise NOT; for bools, logical NOT. */
  bitwiseNot(this: Tensor): Tensor {
    checkBits('bitwiseNot', 'the tensor', this);
    return callTensor('aten::bitwise_not', this);
  }

  /** `this · 2^other` for integers. */
  bitwiseLeftShift(this: Tensor, other: Tensor | Scalar): Tensor {
    const ops = {
      tensor: 'aten::bitwise_left_shift.Tensor',
      scalar: 'aten::bitwise_left_shift.Tensor_Scalar',
    };
    return binaryOfBits(this, other, 'bitwiseLeftShift', ops);
  }

  /** `this / 2^other` for integers, rounded down. */
  bitwiseRightShift(this: Tensor, other: Tensor | Scalar): Tensor {
    const ops = {
      tensor: 'aten::bitwise_right_shift.Tensor',
      scalar: 'aten::bitwise_right_shift.Tensor_Scalar',
    };
    return binaryOfBits(this, other, 'bitwiseRightShift', ops);
  }
}
