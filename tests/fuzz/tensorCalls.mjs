/** Calls of tensor methods and of the functions of lib/tensor, found by reflection. */
import * as tf from '../../dist/index.js';
import * as tensorApi from '../../dist/tensor/index.js';
import { mutate } from './mutate.mjs';
import { anything, dtypes, shape, tensor } from './values.mjs';

const isPlain = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Names of all methods and properties of tensors. */
const members = (() => {
  const found = new Map();
  for (let proto = tf.Tensor.prototype; proto !== Object.prototype;) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      if (name !== 'constructor') found.set(name, property);
    }
    proto = Object.getPrototypeOf(proto);
  }
  return [...found].map(([name, property]) => ({
    name,
    isMethod: 'value' in property,
    isWritable: property.set !== undefined,
  }));
})();

/** Functions that these calls leave alone, each for its reason. */
const left = new Set([
  'print', // writes to the console
  'call', // raw ops: some of ATen's crash on malformed arguments, as `ops` documents
  'callAsync',
  'callTensor',
  'callTensors',
]);

function functionsOf(owner, object) {
  return Object.entries(object).flatMap(([name, value]) => {
    if (left.has(name)) return [];
    if (typeof value === 'function' && !/^class/.test(String(value)))
      return [[owner + name, value]];
    return isPlain(value) && name !== 'ops' ? functionsOf(`${owner}${name}.`, value) : [];
  });
}

const functions = functionsOf('', tensorApi);

/** Arguments that many methods take: another tensor that fits, a dimension, options. */
function likely(r, self) {
  const other = () => tensor(r, [...self.shape], r.chance(70) ? self.dtype : r.pick(dtypes));
  const dim = () => r.below(self.ndim + 1) - 1;
  const index = () => tensor(r, [...self.shape], 'int64').abs();
  return r.pick([
    () => [],
    () => [other()],
    () => [dim()],
    () => [dim(), { keepdim: r.chance(50) }],
    () => [r.below(3), { dim: dim() }],
    () => [dim(), index(), other()],
    () => [dim(), index(), r.below(4)],
    () => [index()],
    () => [other(), other()],
    () => [[...self.shape].reverse()],
    () => [shape(r)],
    () => [r.list(0, self.ndim, () => dim())],
    () => [{ dtype: r.pick(dtypes) }],
    () => [r.below(5) - 2, r.below(5)],
    () => [tensor(r, [...self.shape], 'bool'), r.below(3)],
    () => [dim(), r.below(4), r.below(4), r.below(3)],
    () => [tensor(r, [...self.shape.slice(0, -2), self.shape.at(-1) ?? 1, 3], self.dtype)],
    () => r.list(0, 4, () => anything(r)),
  ])();
}

/** One call of a method, or a read or write of a property. */
export function methodCall(r) {
  const { name, isMethod, isWritable } = r.pick(members);
  const self = tensor(r);
  if (!isMethod) {
    const value = anything(r);
    const write = isWritable && r.chance(50);
    const run = () => (write ? (self[name] = value) : self[name]);
    return {
      name: `Tensor.${name}${write ? ' = ' : ''}`,
      args: write ? [self, value] : [self],
      run,
    };
  }
  const args = mutate(r, likely(r, self));
  if (r.chance(3)) self.dispose();
  return { name: `Tensor.${name}()`, args: [self, ...args], run: () => self[name](...args) };
}

/** One call of an exported function of lib/tensor. */
export function functionCall(r) {
  const [name, call] = r.pick(functions);
  const first = tensor(r);
  const lists = () => [
    r.list(1, 4, () => tensor(r, [...first.shape], first.dtype)),
    r.below(3) - 1,
  ];
  const args = r.pick([
    () => [shape(r), { dtype: r.pick(dtypes) }],
    () => [shape(r), r.below(5), { dtype: r.pick(dtypes) }],
    () => [first, ...likely(r, first)],
    () => [tensor(r, [...first.shape], 'bool'), first, r.below(2)],
    () => [r.below(9), r.below(9), r.below(9)],
    lists,
    () => r.list(0, 4, () => anything(r)),
  ])();
  const given = mutate(r, args);
  return { name: `${name}()`, args: given, run: () => call(...given) };
}
