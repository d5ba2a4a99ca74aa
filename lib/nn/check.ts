/** Checks of the inputs of modules. They read metadata only and compute nothing. */
import { TorchError } from '../runtime/errors.js';
import { describe } from '../runtime/arguments.js';
import { currentResults } from '../tensor/autocast.js';
import { checkTensor, formatShape } from '../tensor/check.js';
import type { Tensor } from '../tensor/tensor.js';
import type { Module } from './module/module.js';
import { isModule } from './module/registration.js';

/**
 * Checks an input whose last dimension has a fixed size, and that it matches a weight. Under
 * `autocast` it may have the dtype that layers then return.
 *
 * @throws RangeError if the size is wrong; TypeError if dtypes differ; TorchError ERR_DEVICE if
 *   devices differ
 */
export function checkFeatures(
  owner: string,
  name: string,
  input: unknown,
  features: number,
  weight: Tensor,
): void {
  checkTensor(owner, name, input);
  const shape = input.shape;
  if (shape.at(-1) !== features) {
    throw new RangeError(
      `${owner}: the last dimension of ${name} must be ${features}, got ${formatShape(shape)}`,
    );
  }
  const isRounded = input.dtype !== weight.dtype && weight.dtype === 'float32';
  if (isRounded && currentResults(weight) === input.dtype) {
    checkSameDevice(owner, name, input, 'the weights', weight);
    return;
  }
  checkAlike(owner, name, input, 'the weights', weight);
}

/** @throws TypeError if dtypes differ; TorchError ERR_DEVICE if devices differ */
export function checkAlike(
  owner: string,
  name: string,
  tensor: Tensor,
  otherName: string,
  other: Tensor,
): void {
  if (tensor.dtype !== other.dtype) {
    throw new TypeError(
      `${owner}: ${name} is ${tensor.dtype} but ${otherName} are ${other.dtype}; ` +
        `convert one: ${name}.to({ dtype: '${other.dtype}' }) or module.to({ dtype: '${tensor.dtype}' })`,
    );
  }
  checkSameDevice(owner, name, tensor, otherName, other);
}

/** @throws TorchError ERR_DEVICE if two tensors are on different devices */
export function checkSameDevice(
  owner: string,
  name: string,
  tensor: Tensor,
  otherName: string,
  other: Tensor,
): void {
  if (tensor.device === other.device) return;
  throw new TorchError(
    'ERR_DEVICE',
    `${owner}: ${name} is on ${tensor.device} but ${otherName} are on ${other.device}; ` +
      `move one: ${name}.to({ device: '${other.device}' }) or module.to({ device: '${tensor.device}' })`,
  );
}

/** Checks token ids: int64 or int32, with `ndim` dimensions if given. @throws TypeError, RangeError */
export function checkIds(owner: string, name: string, ids: unknown, ndim?: number): void {
  checkTensor(owner, name, ids);
  if (ids.dtype !== 'int64' && ids.dtype !== 'int32') {
    throw new TypeError(
      `${owner}: ${name} must contain ids as int64 or int32, got ${ids.dtype}; create them with ` +
        `tensor(…, { dtype: 'int64' })`,
    );
  }
  if (ndim !== undefined && ids.ndim !== ndim) {
    throw new RangeError(
      `${owner}: ${name} must have ${ndim} dimensions [batch, length], got ${formatShape(ids.shape)}`,
    );
  }
}

/** @throws TypeError unless `value` is a Module */
export function checkModule(owner: string, name: string, value: unknown): asserts value is Module {
  if (isModule(value)) return;
  throw new TypeError(`${owner}: ${name} must be a Module, got ${describe(value)}`);
}
