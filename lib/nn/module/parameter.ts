import { checkBoolean, checkOptions } from '../../runtime/arguments.js';
import { checkTensor } from '../../tensor/check.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import { keep } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';

/**
 * A tensor that a {@link Module} owns and an optimizer updates.
 *
 * It is registered by assignment to a property: `this.weight = new Parameter(zeros([3, 2]))`.
 * It is a leaf of the autograd graph, stays the same object after `module.to(…)`, and is not freed
 * by scopes but by {@link Module.dispose}.
 */
export class Parameter extends Tensor {
  /**
   * @param data any shape; the parameter shares its memory (as in PyTorch) unless `data` is not
   *   contiguous, but never its autograd history
   * @param options `requiresGrad`: default true; false for a frozen parameter
   * @throws TypeError if `data` is not a tensor, or has an integer dtype and `requiresGrad` is true
   */
  constructor(data: Tensor, options: { requiresGrad?: boolean } = {}) {
    checkTensor('Parameter', 'data', data);
    checkOptions('Parameter', options, ['requiresGrad']);
    const { requiresGrad = true } = options;
    checkBoolean('Parameter', 'requiresGrad', requiresGrad);
    if (requiresGrad && !isFloatingPoint(data.dtype)) {
      throw new TypeError(
        `Parameter: data must have a floating-point dtype to require gradients, got ${data.dtype}; ` +
          'convert it, or pass { requiresGrad: false }',
      );
    }
    return ownedAs(new.target.prototype, data, requiresGrad) as Parameter;
    // Unreachable, since the object above replaces `this`, but TypeScript requires it.
    super();
  }

  /** Always true. Distinguishes a Parameter from a plain tensor, also for TypeScript. */
  get isParameter(): true {
    return true;
  }

  override toString(): string {
    return `Parameter containing:\n${super.toString()}`;
  }
}

/**
 * A tensor that is part of a {@link Module}'s state but has no gradient, such as a table of
 * positions. It is registered by assignment to a property, moved by `module.to(…)`, and not freed
 * by scopes.
 */
export class Buffer extends Tensor {
  /**
   * @param data any shape and dtype; memory is shared as in {@link Parameter}
   * @param options `persistent`: part of `stateDict()`, default true
   * @throws TypeError if `data` is not a tensor
   */
  constructor(data: Tensor, options: { persistent?: boolean } = {}) {
    checkTensor('Buffer', 'data', data);
    checkOptions('Buffer', options, ['persistent']);
    const { persistent = true } = options;
    checkBoolean('Buffer', 'persistent', persistent);
    const buffer = ownedAs(new.target.prototype, data, false) as Buffer;
    if (!persistent) transientBuffers.add(buffer);
    return buffer;
    super();
  }

  /** Whether `stateDict()` includes this buffer. */
  get persistent(): boolean {
    return !transientBuffers.has(this);
  }
}

const transientBuffers = new WeakSet<Buffer>();

/** A new tensor of another class on the memory of `data`, outside all scopes. */
function ownedAs(prototype: object, data: Tensor, requiresGrad: boolean): Tensor {
  // Native code creates only plain Tensors, hence the change of prototype. The fused optimizers
  // treat parameter, gradient and state as flat memory, so they must be contiguous.
  const detached = data.detach();
  const own = detached.contiguous();
  if (own !== detached) detached.dispose();
  Object.setPrototypeOf(own, prototype);
  if (requiresGrad) own.requiresGrad = true;
  return keep(own);
}
