import { Module } from '../module/module.js';
import type { Transformer } from './transformer.js';
import { TorchError } from '../../runtime/errors.js';
import { describe } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';

/**
 * Checks a model by its parts, not its class: other models with a Transformer's methods are as
 * good.
 *
 * @throws TypeError naming what is missing
 * @throws TorchError ERR_DISPOSED for a model that has been disposed of
 */
export function checkModel(owner: string, value: unknown): asserts value is Transformer {
  const refuse = (missing: string): never => {
    throw new TypeError(
      `${owner}: model must be a Transformer such as makeModel(…) gives, got ${describe(value)}${missing}`,
    );
  };
  if (!(value instanceof Module)) return refuse('');
  const model = value as Module & Partial<Pick<Transformer, 'encode' | 'decode' | 'generator'>>;
  if (typeof model.encode !== 'function') refuse(' without encode()');
  if (typeof model.decode !== 'function') refuse(' without decode()');
  const projection = model.generator?.proj;
  if (typeof projection?.outFeatures !== 'number') return refuse(' without a generator');
  // A projection of another class need not have a weight.
  if ((projection.weight as Tensor | undefined)?.isDisposed === true) {
    throw new TorchError('ERR_DISPOSED', `${owner}: the model has been disposed of`);
  }
}
