/** The error of a model whose probabilities are not numbers. */
import type { Module } from '../nn/module/module.js';
import { TorchError } from '../runtime/errors.js';
import { callTensor } from '../tensor/dispatch.js';
import { isFloatingPoint } from '../tensor/dtype.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';

/**
 * @param place whose probabilities, such as `'greedy: row 0 of src'`
 * @param position which token of the output, from 1
 */
export function nonFiniteFault(model: Module, place: string, position: number): TorchError {
  return new TorchError(
    'ERR_NON_FINITE',
    `${place}: the probabilities of output token ${position} are NaN or infinite; ${causeIn(model)}`,
  );
}

/** Looks at all weights, which only a search that has failed has the time for. */
function causeIn(model: Module): string {
  const state = [...model.namedParameters(), ...model.namedBuffers()];
  const floating = state.filter(([, { dtype }]) => isFloatingPoint(dtype));
  const broken = floating.filter(([, values]) => !allFinite(values)).map(([name]) => `"${name}"`);
  if (broken.length > 0) {
    const more = broken.length > 3 ? ` and ${broken.length - 3} more` : '';
    return (
      `the model's ${broken.slice(0, 3).join(', ')}${more} hold values that are: ` +
      'use a model from before that happened'
    );
  }
  return floating.some(([, { dtype }]) => dtype === 'float16')
    ? 'all weights are finite, so numbers left the range of float16: use model.float() or model.bfloat16()'
    : 'all weights are finite, so numbers overflowed on the way: some weights are too large';
}

function allFinite(values: Tensor): boolean {
  return tidy(() => Boolean(callTensor('aten::isfinite', values).all().item()));
}
