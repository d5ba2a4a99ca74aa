/** The error for a model whose probabilities are not finite. */
import type { Module } from '../nn/module/module.js';
import { TorchError } from '../runtime/errors.js';
import { callTensor } from '../tensor/dispatch.js';
import { isFloatingPoint } from '../tensor/dtype.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';

/**
 * @param place where the probabilities occur, such as `'greedy: row 0 of src'`
 * @param position position of the token in the output; counts from 1
 */
export function nonFiniteFault(model: Module, place: string, position: number): TorchError {
  return new TorchError(
    'ERR_NON_FINITE',
    `${place}: the probabilities of output token ${position} are NaN or infinite; ${causeIn(model)}`,
  );
}

/** Checks all weights, which is too slow except after a failure. */
function causeIn(model: Module): string {
  const state = [...model.namedParameters(), ...model.namedBuffers()];
  const floating = state.filter(([, { dtype }]) => isFloatingPoint(dtype));
  const broken = floating.filter(([, values]) => !allFinite(values)).map(([name]) => `"${name}"`);
  if (broken.length > 0) {
    const more = broken.length > 3 ? ` and ${broken.length - 3} more` : '';
    return (
      `the model's ${broken.slice(0, 3).join(', ')}${more} ${broken.length === 1 ? 'contains' : 'contain'} NaN or infinite values: ` +
      'use a model saved before that happened'
    );
  }
  return floating.some(([, { dtype }]) => dtype === 'float16')
    ? 'all weights are finite, so values exceeded the range of float16: use model.float() or model.bfloat16()'
    : 'all weights are finite, so values overflowed in the computation: some weights are too large';
}

function allFinite(values: Tensor): boolean {
  return tidy(() => Boolean(callTensor('aten::isfinite', values).all().item()));
}
