/** Elementwise in-place methods of Tensor. Each returns the tensor itself. */
import { checkScalar, type Scalar } from '../check.js';
import type { Tensor } from '../tensor.js';
import { binaryInPlace, inPlace, overloads } from './binary.js';

/**
 * In-place arithmetic. Each method throws TypeError for an argument of a wrong type or dtype,
 * RangeError for shapes that cannot be broadcast to this one, and TorchError for tensors on different
 * devices or a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class InPlaceMethods {
  /** Clamps elements to `[min, max]`; null: no limit. @throws TypeError if both are missing */
  clamp_(this: Tensor, min?: Scalar | null, max?: Scalar | null): Tensor {
    const [low, high] = [min ?? null, max ?? null];
    if (low === null && high === null) {
      throw new TypeError('clamp_: pass min, max or both; got neither');
    }
    if (low !== null) checkScalar('clamp_', 'min', low);
    if (high !== null) checkScalar('clamp_', 'max', high);
    return inPlace(this, 'aten::clamp_', low, high);
  }

  /** Raises to the power of `exponent`. */
  pow_(this: Tensor, exponent: Tensor | Scalar): Tensor {
    return binaryInPlace(this, exponent, 'pow_', overloads('pow_'));
  }

  /** Remainder with the sign of `other`, like Python's `%`. */
  remainder_(this: Tensor, other: Tensor | Scalar): Tensor {
    return binaryInPlace(this, other, 'remainder_', overloads('remainder_'));
  }

  /** Negates each element. */
  neg_(this: Tensor): Tensor {
    return inPlace(this, 'aten::neg_');
  }

  /** Absolute values. */
  abs_(this: Tensor): Tensor {
    return inPlace(this, 'aten::abs_');
  }

  /** `e` to the power of each element. */
  exp_(this: Tensor): Tensor {
    return inPlace(this, 'aten::exp_');
  }

  /** Natural logarithms. */
  log_(this: Tensor): Tensor {
    return inPlace(this, 'aten::log_');
  }

  /** Square roots. */
  sqrt_(this: Tensor): Tensor {
    return inPlace(this, 'aten::sqrt_');
  }

  /** `1 / sqrt(x)`. */
  rsqrt_(this: Tensor): Tensor {
    return inPlace(this, 'aten::rsqrt_');
  }

  /** Squares. */
  square_(this: Tensor): Tensor {
    return inPlace(this, 'aten::square_');
  }

  /** `1 / x`. */
  reciprocal_(this: Tensor): Tensor {
    return inPlace(this, 'aten::reciprocal_');
  }

  /** `1 / (1 + exp(-x))`. */
  sigmoid_(this: Tensor): Tensor {
    return inPlace(this, 'aten::sigmoid_');
  }

  /** Hyperbolic tangents. */
  tanh_(this: Tensor): Tensor {
    return inPlace(this, 'aten::tanh_');
  }

  /** `max(x, 0)`. */
  relu_(this: Tensor): Tensor {
    return inPlace(this, 'aten::relu_');
  }

  /** Rounds down. */
  floor_(this: Tensor): Tensor {
    return inPlace(this, 'aten::floor_');
  }

  /** Rounds up. */
  ceil_(this: Tensor): Tensor {
    return inPlace(this, 'aten::ceil_');
  }

  /** Rounds to the nearest integer, half to even. */
  round_(this: Tensor): Tensor {
    return inPlace(this, 'aten::round_');
  }

  /** Rounds towards zero. */
  trunc_(this: Tensor): Tensor {
    return inPlace(this, 'aten::trunc_');
  }
}
