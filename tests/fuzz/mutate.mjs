import { anything, odd } from './values.mjs';
import * as tf from '../../dist/index.js';

/** Plain objects and arrays can be changed inside; all else is replaced as a whole. */
function isOpen(value) {
  if (Array.isArray(value)) return value.length > 0;
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    Object.keys(value).length > 0
  );
}

/** `value` with something in it replaced, left out or added. */
function changed(r, value) {
  if (isOpen(value) && r.chance(75)) {
    const copy = Array.isArray(value) ? [...value] : { ...value };
    const key = r.pick(Object.keys(copy));
    if (r.chance(8)) delete copy[key];
    else if (r.chance(4) && !Array.isArray(copy)) copy.unknownOption = 1;
    else copy[key] = changed(r, copy[key]);
    return copy;
  }
  if (value instanceof tf.Tensor && r.chance(70)) return otherTensor(r, value);
  return r.chance(50) ? odd(r) : anything(r);
}

/** A tensor that differs from a good one in one respect. */
function otherTensor(r, tensor) {
  if (tensor.isDisposed) return tensor;
  const last = tensor.ndim - 1;
  const changes = [
    () => tensor.unsqueeze(0),
    () => (tensor.ndim > 0 ? tensor.select(0, 0) : tensor),
    () => (tensor.ndim > 0 ? tensor.narrow(last, 0, tensor.shape[last] - 1) : tensor),
    () => (tensor.ndim > 0 ? tensor.narrow(0, 0, 0) : tensor),
    () => (tensor.ndim > 0 ? tf.cat([tensor, tensor], last) : tensor),
    () => (tensor.ndim > 1 ? tensor.transpose(0, last) : tensor),
    () => tensor.reshape([-1]),
    () => tensor.to({ dtype: r.pick(tf.dtypes) }),
    () => tf.callTensor('aten::full_like', tensor, r.pick([NaN, Infinity, -1, 1e300])),
    () => tensor.detach().to({ dtype: 'float32' }).requiresGrad_(true),
    () => {
      tensor.dispose();
      return tensor;
    },
  ];
  try {
    return r.pick(changes)();
  } catch {
    return tensor;
  }
}

/** A call's good arguments with none, one or a few of them spoilt. */
export function mutate(r, args) {
  let result = args;
  for (let count = r.pick([0, 1, 1, 1, 1, 2, 3]); count > 0; count--) {
    if (r.chance(6)) result = result.slice(0, -1);
    else if (r.chance(6)) result = [...result, anything(r)];
    else if (result.length > 0) {
      const index = r.below(result.length);
      result = result.map((value, at) => (at === index ? changed(r, value) : value));
    }
  }
  return result;
}
