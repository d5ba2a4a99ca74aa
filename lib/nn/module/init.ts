/**
 * Weight initialization. Values are drawn from the generator of this environment (`manualSeed`)
 * with the same libtorch ops in the same order as in PyTorch, so equal seeds give equal weights.
 * All functions work in place, without autograd, and return their tensor.
 */
import { checkNumber } from '../../runtime/arguments.js';
import { noGrad } from '../../tensor/autograd.js';
import { checkTensor, formatShape } from '../../tensor/check.js';
import { call } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import { hasValues } from './withoutValues.js';

/** Fills the tensor with uniform values in [low, high). Defaults: 0 and 1. */
export function uniform_<T extends Tensor>(tensor: T, low = 0, high = 1): T {
  checkTensor('uniform_', 'tensor', tensor);
  checkNumber('uniform_', 'low', low);
  checkNumber('uniform_', 'high', high);
  if (hasValues()) noGrad(() => void call('aten::uniform_', tensor, low, high));
  return tensor;
}

/** Fills the tensor with normal values of this mean and standard deviation. Defaults: 0 and 1. */
export function normal_<T extends Tensor>(tensor: T, mean = 0, std = 1): T {
  checkTensor('normal_', 'tensor', tensor);
  checkNumber('normal_', 'mean', mean);
  checkNumber('normal_', 'std', std);
  if (hasValues()) noGrad(() => void call('aten::normal_', tensor, mean, std));
  return tensor;
}

/** Fills the tensor with one value. */
export function constant_<T extends Tensor>(tensor: T, value: number): T {
  checkTensor('constant_', 'tensor', tensor);
  checkNumber('constant_', 'value', value);
  noGrad(() => void call('aten::fill_.Scalar', tensor, value));
  return tensor;
}

/**
 * Fills the tensor with uniform values in ±gain·√(6 / (fanIn + fanOut)) (Glorot and Bengio 2010).
 * Seed 001 applies it to every parameter with more than one dimension.
 *
 * @param tensor `[out, in]`, optionally with more dimensions after these
 * @param gain default 1
 * @throws RangeError if `tensor` has fewer than two dimensions
 */
export function xavierUniform_<T extends Tensor>(tensor: T, gain = 1): T {
  const { fanIn, fanOut } = fans('xavierUniform_', tensor);
  checkNumber('xavierUniform_', 'gain', gain);
  const bound = Math.sqrt(3) * (gain * Math.sqrt(2 / (fanIn + fanOut)));
  return uniform_(tensor, -bound, bound);
}

/**
 * Fills the tensor with uniform values in ±√3·gain/√fanIn with gain √(2 / (1 + a²)) (He et al.
 * 2015). With a = √5 this is ±1/√fanIn, PyTorch's default for the weights of Linear.
 *
 * @param tensor `[out, in]`, optionally with more dimensions after these
 * @param a negative slope of the leaky ReLU that follows; default 0
 * @throws RangeError if `tensor` has fewer than two dimensions
 */
export function kaimingUniform_<T extends Tensor>(tensor: T, a = 0): T {
  const { fanIn } = fans('kaimingUniform_', tensor);
  checkNumber('kaimingUniform_', 'a', a);
  const bound = Math.sqrt(3) * (Math.sqrt(2 / (1 + a ** 2)) / Math.sqrt(fanIn));
  return uniform_(tensor, -bound, bound);
}

function fans(owner: string, tensor: Tensor): { fanIn: number; fanOut: number } {
  checkTensor(owner, 'tensor', tensor);
  const [out, inputs, ...field] = tensor.shape;
  if (out === undefined || inputs === undefined) {
    throw new RangeError(
      `${owner}: tensor must have at least two dimensions [out, in], got ${formatShape(tensor.shape)}`,
    );
  }
  const fieldSize = field.reduce((product, size) => product * size, 1);
  return { fanIn: inputs * fieldSize, fanOut: out * fieldSize };
}
