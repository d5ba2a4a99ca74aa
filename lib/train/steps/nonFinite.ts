import type { Module } from '../../nn/module/module.js';
import { noGrad } from '../../tensor/autograd.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';

/**
 * The first parameter with a weight or a gradient that is not finite, for an error message; null if
 * there is none, because the fault arose in between.
 */
export function faultyParameter(model: Module): string | null {
  const parameters = [...model.namedParameters()];
  const weight = parameters.find(([, parameter]) => !isFinite(parameter));
  if (weight !== undefined) return `the weights of ${weight[0]}`;
  const gradient = parameters.find(
    ([, { grad }]) => grad !== null && !grad.isSparse && !isFinite(grad),
  );
  return gradient === undefined ? null : `the gradient of ${gradient[0]}`;
}

function isFinite(tensor: Tensor): boolean {
  return Boolean(noGrad(() => tidy(() => tensor.detach().isfinite().all().item())));
}
