import { noGrad } from '../tensor/autograd.js';
import { cat, stack } from '../tensor/create.js';
import { callTensor, callTensors } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';

/** The stored values of all gradients; scaling the coalesced values of a sparse one scales it. */
export function storedGradients(parameters: Iterable<Tensor>): Tensor[] {
  return [...parameters].flatMap((parameter) => storedGradient(parameter) ?? []);
}

function storedGradient(parameter: Tensor): Tensor | null {
  const gradient = parameter.grad;
  if (gradient === null || !gradient.isSparse) return gradient;
  const coalesced = callTensor('aten::coalesce', gradient);
  parameter.grad = coalesced;
  return callTensor('aten::_values', coalesced);
}

/**
 * The norm of all gradients, as if they were one vector, computed on their device without waiting.
 *
 * @param gradients at least one, see {@link storedGradients}
 * @param normType order of the norm; Infinity: the largest absolute value
 * @returns float64 scalar on the device of the first gradient
 */
export function gradientNorm(gradients: readonly Tensor[], normType: number): Tensor {
  return tidy(() =>
    noGrad(() => {
      const device = (gradients[0] as Tensor).device;
      // Squares of half-precision numbers overflow easily.
      const norms = [...byKind(gradients).values()].map((group) => {
        const type = accumulationType(group[0] as Tensor);
        const found = callTensors('aten::_foreach_norm.Scalar', group, normType, type);
        // Converted together: a model has hundreds of parameters.
        return stack(found).to({ dtype: 'float64', device });
      });
      return callTensor('aten::linalg_vector_norm', cat(norms), normType);
    }),
  );
}

/** Groups tensors by dtype and device, because the `_foreach_` ops take only one of each. */
export function byKind(tensors: readonly Tensor[]): Map<string, Tensor[]> {
  const groups = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const kind = `${tensor.dtype} ${tensor.device}`;
    const group = groups.get(kind);
    if (group === undefined) groups.set(kind, [tensor]);
    else group.push(tensor);
  }
  return groups;
}

function accumulationType(gradient: Tensor): 'float64' | 'float32' {
  return gradient.dtype === 'float64' ? 'float64' : 'float32';
}
