import { checkOptions, checkPositiveOrInfinite, describe } from '../runtime/arguments.js';
import { noGrad } from '../tensor/autograd.js';
import { call } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import { Tensor } from '../tensor/tensor.js';
import { byKind, gradientNorm, storedGradients } from './gradientNorm.js';

/** Options of {@link clipGradNorm}. */
export interface ClipGradNormOptions {
  /** order of the norm; default 2; Infinity: the largest absolute value */
  normType?: number;
}

/**
 * Scales all gradients so that their norm, as if they were one vector, is at most `maxNorm`.
 * Gradients are not changed if the norm is not finite; the caller can then skip the step.
 *
 * @param parameters an iterable of tensors, or a single one; those without a gradient are skipped
 * @param maxNorm above 0
 * @returns the norm before scaling; 0 if there are no gradients
 * @throws RangeError, TypeError for arguments out of range
 */
export function clipGradNorm(
  parameters: Iterable<Tensor> | Tensor,
  maxNorm: number,
  options: ClipGradNormOptions = {},
): number {
  checkOptions('clipGradNorm', options, ['normType']);
  const { normType = 2 } = options;
  checkPositiveOrInfinite('clipGradNorm', 'maxNorm', maxNorm);
  checkPositiveOrInfinite('clipGradNorm', 'normType', normType);
  const list = listOf(parameters);
  for (const parameter of list) {
    if (!(parameter instanceof Tensor)) {
      throw new TypeError(`clipGradNorm: parameters must be Tensors, got ${describe(parameter)}`);
    }
  }
  return tidy(() =>
    noGrad(() => {
      const gradients = storedGradients(list);
      if (gradients.length === 0) return 0;
      const total = gradientNorm(gradients, normType).item();
      const scale = maxNorm / (total + 1e-6);
      if (Number.isFinite(total) && scale < 1) {
        for (const group of byKind(gradients).values()) {
          call('aten::_foreach_mul_.Scalar', group, scale);
        }
      }
      return total;
    }),
  );
}

function listOf(parameters: Iterable<Tensor> | Tensor): Tensor[] {
  // A tensor is also iterable, but its rows have no gradients.
  if (parameters instanceof Tensor) return [parameters];
  const given: unknown = parameters;
  if (typeof given === 'object' && given !== null && Symbol.iterator in given) {
    return [...parameters];
  }
  throw new TypeError(
    'clipGradNorm: parameters must be Tensors, such as module.parameters(), ' +
      `got ${describe(given)}`,
  );
}
