import { checkBoolean, checkOptions } from '../../runtime/arguments.js';
import { checkTensor } from '../../tensor/check.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import { keep } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';

/**
 * A tensor that a {@link Module} owns and an optimizer changes.
 *
 * A Module registers it by plain assignment: `this.weight = new Parameter(zeros([3, 2]))`.
 * It is a leaf of the autograd graph, stays the same object through `module.to(…)`, and outlives
 * every scope; {@link Module.dispose} frees it.
 */
export class Parameter extends Tensor {
  /**
   * @param data any shape; the parameter shares its memory (as in PyTorch) unless `data` is not
   *   contiguous, but never its autograd history
   * @param options `requiresGrad`: default true; a frozen parameter passes false
   * @throws TypeError when `data` is no tensor, or holds integers and `requiresGrad` is true
   */
  constructor(data: Tensor, options: { requiresGrad?: boolean } = {}) {
    checkTensor('Parameter', 'data', data);
    checkOptions('Parameter', options, ['requiresGrad']);
    const { requiresGrad = true } = options;
    checkBoolean('Parameter', 'requiresGrad', requiresGrad);
    if (requiresGrad && !isFloatingPoint(data.dtype)) {
      throw new TypeError(
        `Parameter: data must have a floating dtype to get gradients, got ${data.dtype}; ` +
          'convert it, or pass { requiresGrad: false }',
      );
    }
    return ownedAs(new.target.prototype, data, requiresGrad) as Parameter;
    // Never reached: the object above takes the place of `this`. TypeScript wants to see it.
    super();
  }

  /** Always true. Tells a Parameter from a plain tensor, for TypeScript too. */
  get isParameter(): true {
    return true;
  }

  override toString(): string {
    return `Parameter containing:\n${super.toString()}`;
  }
}

/**
 * A tensor that belongs to a {@link Module}'s state but gets no gradient, such as a table of
 * positions. Registered by plain assignment, moved by `module.to(…)`, outlives every scope.
 */
export class Buffer extends Tensor {
  /**
   * @param data any shape and dtype; memory is shared as in {@link Parameter}
   * @param options `persistent`: part of `stateDict()`, default true
   * @throws TypeError when `data` is no tensor
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

  /** Whether `stateDict()` has this buffer. */
  get persistent(): boolean {
    return !transientBuffers.has(this);
  }
}

const transientBuffers = new WeakSet<Buffer>();

/** A handle of its own on the memory of `data`, with another class, outside of all scopes. */
function ownedAs(prototype: object, data: Tensor, requiresGrad: boolean): Tensor {
  // Native code makes plain Tensors only, hence the change of prototype. Contiguous because the
  // fused optimizers walk parameter, gradient and state as flat memory.
  const detached = data.detach();
  const own = detached.contiguous();
  if (own !== detached) detached.dispose();
  Object.setPrototypeOf(own, prototype);
  if (requiresGrad) own.requiresGrad = true;
  return keep(own);
}
