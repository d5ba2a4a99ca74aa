import { Module } from '../module/module.js';
import type { Transformer } from './transformer.js';
import { TorchError } from '../../runtime/errors.js';
import { describe } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';

/**
 * Checks a model by its members, not its class: other models with the methods of a Transformer are
 * accepted too.
 *
 * @throws TypeError if `value` is not such a model
 * @throws TorchError ERR_DISPOSED if the model has been disposed of
 */
export function checkModel(owner: string, value: unknown): asserts value is Transformer {
  const reject = (missing: string): never => {
    throw new TypeError(
      `${owner}: model must be a Transformer, as returned by makeModel(…), got ${describe(value)}${missing}`,
    );
  };
  if (!(value instanceof Module)) return reject('');
  const model = value as Module & Partial<Pick<Transformer, 'encode' | 'decode' | 'generator'>>;
  if (typeof model.encode !== 'function') reject(' without encode()');
  if (typeof model.decode !== 'function') reject(' without decode()');
  const projection = model.generator?.proj;
  if (typeof projection?.outFeatures !== 'number') return reject(' without a generator');
  // A projection of another class may not have a weight.
  if ((projection.weight as Tensor | undefined)?.isDisposed === true) {
    throw new TorchError('ERR_DISPOSED', `${owner}: the model has been disposed of`);
  }
}
