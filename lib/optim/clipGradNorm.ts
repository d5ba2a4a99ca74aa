import { checkOptions, describe } from '../runtime/options.js';
import { noGrad } from '../tensor/autograd.js';
import { stack } from '../tensor/create.js';
import { call, callTensor, callTensors } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import { Tensor } from '../tensor/tensor.js';

/** Options of {@link clipGradNorm}. */
export interface ClipGradNormOptions {
  /** which norm; default 2; Infinity: the largest magnitude */
  normType?: number;
}

/**
 * Scales all gradients together so that their norm, taken as one vector, is at most `maxNorm`.
 * Gradients are left alone when the norm is not finite: the caller sees it and can skip the step.
 *
 * @param parameters an iterable of tensors, or a single one; those without gradient are skipped
 * @param maxNorm above 0
 * @returns the norm before scaling; 0 without gradients
 * @throws RangeError, TypeError for arguments out of range
 */
export function clipGradNorm(
  parameters: Iterable<Tensor> | Tensor,
  maxNorm: number,
  options: ClipGradNormOptions = {},
): number {
  checkOptions('clipGradNorm', options, ['normType']);
  const { normType = 2 } = options;
  checkPositive('maxNorm', maxNorm);
  checkPositive('normType', normType);
  const list = listOf(parameters);
  for (const parameter of list) {
    if (!(parameter instanceof Tensor)) {
      throw new TypeError(`clipGradNorm: parameters must be Tensors, got ${describe(parameter)}`);
    }
  }
  return tidy(() =>
    noGrad(() => {
      const gradients = list.flatMap((parameter) => storedGradient(parameter) ?? []);
      const [first] = gradients;
      if (first === undefined) return 0;
      // Squares of half-precision numbers overflow soon.
      const norms = [...byKind(gradients).values()].flatMap((group) =>
        callTensors(
          'aten::_foreach_norm.Scalar',
          group,
          normType,
          accumulationType(group[0] as Tensor),
        ),
      );
      const together = stack(
        norms.map((norm) => norm.to({ dtype: 'float64', device: first.device })),
      );
      const total = callTensor('aten::linalg_vector_norm', together, normType).item();
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
  // A tensor is an iterable too, of its rows, which have no gradients.
  if (parameters instanceof Tensor) return [parameters];
  const given: unknown = parameters;
  if (typeof given === 'object' && given !== null && Symbol.iterator in given) {
    return [...parameters];
  }
  throw new TypeError(
    'clipGradNorm: parameters must be Tensors such as module.parameters() gives, ' +
      `got ${describe(given)}`,
  );
}

/** The numbers of a gradient: of a sparse one its rows, each stored once; scaling them scales it. */
function storedGradient(parameter: Tensor): Tensor | null {
  const gradient = parameter.grad;
  if (gradient === null || !gradient.isSparse) return gradient;
  const coalesced = callTensor('aten::coalesce', gradient);
  parameter.grad = coalesced;
  return callTensor('aten::_values', coalesced);
}

function accumulationType(gradient: Tensor): 'float64' | 'float32' {
  return gradient.dtype === 'float64' ? 'float64' : 'float32';
}

/** The list ops take one dtype on one device. */
function byKind(tensors: readonly Tensor[]): Map<string, Tensor[]> {
  const groups = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const kind = `${tensor.dtype} ${tensor.device}`;
    const group = groups.get(kind);
    if (group === undefined) groups.set(kind, [tensor]);
    else group.push(tensor);
  }
  return groups;
}

function checkPositive(name: string, value: unknown): void {
  if (typeof value !== 'number') {
    throw new TypeError(`clipGradNorm: ${name} must be a number, got ${describe(value)}`);
  }
  if (!(value > 0)) throw new RangeError(`clipGradNorm: ${name} must be above 0, got ${value}`);
}
