/** Methods of Tensor that draw random numbers from the environment's generator. */
import {
  checkBoolean,
  checkInteger,
  checkNumber,
  checkOptions,
  checkProbability,
} from '../../runtime/arguments.js';
import { checkIndex, explained, formatShape } from '../check.js';
import { call, callTensor } from '../dispatch.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';

/** Options of {@link Tensor.multinomial}. */
export interface MultinomialOptions {
  /** Whether an index may be drawn more than once. Default false, as in PyTorch. */
  replacement?: boolean;
}

/**
 * Random numbers. Each method throws TypeError for an argument of a wrong type or dtype, RangeError
 * for a parameter out of range, and TorchError for tensors on different devices or a disposed tensor.
 *
 * @throws TypeError, RangeError, TorchError ERR_DISPOSED
 */
export abstract class RandomMethods {
  /** Draws every element uniformly from `[from, to)`, in place; returns this tensor. Default 0, 1. */
  uniform_(this: Tensor, from = 0, to = 1): Tensor {
    checkNumber('uniform_', 'from', from);
    checkNumber('uniform_', 'to', to);
    if (!(from <= to)) {
      throw new RangeError(`uniform_: from must not exceed to, got ${from} and ${to}`);
    }
    call('aten::uniform_', this, from, to);
    return this;
  }

  /** Draws every element from a normal distribution, in place; returns this tensor. */
  normal_(this: Tensor, mean = 0, std = 1): Tensor {
    checkNumber('normal_', 'mean', mean);
    checkNumber('normal_', 'std', std);
    if (!(std >= 0)) throw new RangeError(`normal_: std must not be negative, got ${std}`);
    call('aten::normal_', this, mean, std);
    return this;
  }

  /** Draws every element from the integers `from` to `to - 1`, in place; returns this tensor. */
  random_(this: Tensor, from: number, to: number): Tensor {
    checkIndex('random_', 'from', from);
    checkIndex('random_', 'to', to);
    if (from >= to) throw new RangeError(`random_: from must be below to, got ${from} and ${to}`);
    call('aten::random_.from', this, from, to);
    return this;
  }

  /** Draws every element from an exponential distribution, in place; returns this tensor. */
  exponential_(this: Tensor, rate = 1): Tensor {
    checkNumber('exponential_', 'rate', rate);
    if (!(rate > 0)) throw new RangeError(`exponential_: rate must be positive, got ${rate}`);
    call('aten::exponential_', this, rate);
    return this;
  }

  /**
   * Sets every element to 1 with probability `p`, else to 0; returns this tensor.
   *
   * @param p a probability, or a tensor of probabilities that can be broadcast to this shape
   */
  bernoulli_(this: Tensor, p: Tensor | number = 0.5): Tensor {
    if (isTensor(p)) {
      call('aten::bernoulli_.Tensor', this, p);
    } else {
      call('aten::bernoulli_.float', this, checkProbability('bernoulli_', 'p', p));
    }
    return this;
  }

  /** 1 with the probability given by each element, else 0. */
  bernoulli(this: Tensor): Tensor {
    return callTensor('aten::bernoulli', this);
  }

  /**
   * Draws `count` indices (int64) with probabilities proportional to the weights in this tensor:
   * `[C]` → `[count]`, `[R, C]` → `[R, count]`.
   *
   * @throws RangeError for other ranks, or for more draws than weights without `replacement`
   */
  multinomial(this: Tensor, count: number, options: MultinomialOptions = {}): Tensor {
    checkInteger('multinomial', 'count', count, 1);
    checkOptions('multinomial', options, ['replacement']);
    const { replacement = false } = options;
    checkBoolean('multinomial', 'replacement', replacement);
    return explained(
      () => callTensor('aten::multinomial', this, count, replacement),
      () => {
        const { shape } = this;
        if (shape.length !== 1 && shape.length !== 2) {
          throw new RangeError(
            `multinomial: the weights must be [C] or [R, C], got ${formatShape(shape)}`,
          );
        }
        const size = shape.at(-1) ?? 0;
        if (!replacement && count > size) {
          throw new RangeError(
            `multinomial: ${count} draws from ${size} weights require { replacement: true }`,
          );
        }
      },
    );
  }
}
