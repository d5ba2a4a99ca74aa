/** Values that callers may pass by mistake, and tensors of every kind that they may have. */
import * as tf from '../../dist/index.js';

// Sizes between "small" and "more than any memory" are missing on purpose: those would be granted,
// and take minutes to fill.
const huge = [2 ** 40, 2 ** 53 - 1];
const numbers = [0, 1, 2, 3, 4, 5, -1, -2, -7, 17, 0.5, 1.5, -0.25, NaN, Infinity, -Infinity, -0];
const oddNumbers = [...huge, -(2 ** 40), 2 ** 53, 2 ** 63, -(2 ** 63), 1e300, 5e-324];

export const dtypes = [
  ...['float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8'],
  'bool',
];

export function size(r) {
  return r.chance(8) ? 0 : r.chance(15) ? r.pick([7, 16, 17, 33]) : 1 + r.below(5);
}

export function shape(r) {
  return r.list(0, 4, () => size(r));
}

function elements(r, count, dtype) {
  const special = r.chance(12);
  return Array.from({ length: count }, () => {
    if (dtype.includes('float')) {
      return special && r.chance(20)
        ? r.pick([NaN, Infinity, -Infinity, 1e300])
        : r.below(200) / 50 - 2;
    }
    if (dtype === 'bool') return r.chance(50);
    if (special && r.chance(20)) return r.pick(dtype === 'uint8' ? [255, 17] : [-1, 127, -128]);
    return r.below(6);
  });
}

/** A tensor with exactly this shape and dtype: contiguous, or a view with any strides. */
export function tensor(r, sizes = shape(r), dtype = r.chance(60) ? 'float32' : r.pick(dtypes)) {
  const count = sizes.reduce((product, one) => product * one, 1);
  if (count > 100_000) return tf.zeros(sizes.map(() => 1));
  const plain = (wanted) => {
    const total = wanted.reduce((product, one) => product * one, 1);
    return shaped(elements(r, total, dtype), wanted, dtype);
  };
  const way = r.below(10);
  let result;
  if (way === 0 && sizes.length > 1) {
    const dims = sizes.map((_, index) => index).reverse();
    result = plain([...sizes].reverse()).permute(dims);
  } else if (way === 1 && sizes.length > 0) {
    const last = sizes.length - 1;
    result = plain([...sizes.slice(0, last), sizes[last] * 2 + 1]).slice(last, 1, null, 2);
  } else if (way === 2 && sizes.length > 0 && sizes[0] > 0) {
    result = plain([1, ...sizes.slice(1)]).expand(sizes);
  } else if (way === 3 && sizes.length > 0) {
    result = plain([sizes[0] + 2, ...sizes.slice(1)]).narrow(0, 1, sizes[0]);
  } else {
    result = plain(sizes);
  }
  if (dtype.includes('float') && r.chance(25)) {
    // A leaf, or something with a history.
    result = result.detach().requiresGrad_(true);
    if (r.chance(40)) result = result.mul(2);
  }
  return result;
}

/** A tensor of ids below `limit`, rarely one outside. */
export function ids(r, sizes, limit, dtype = 'int64') {
  const count = sizes.reduce((product, one) => product * one, 1);
  const wrong = r.chance(10);
  const values = Array.from({ length: count }, () =>
    wrong && r.chance(30) ? r.pick([-1, limit, 2 ** 40, -100]) : r.below(Math.max(1, limit)),
  );
  return shaped(dtype === 'int64' ? values : values.map((one) => one % 100), sizes, dtype);
}

/** A contiguous tensor of these elements. */
export function shaped(values, sizes, dtype) {
  return tf.tensor(values, { dtype }).reshape(sizes);
}

function disposed() {
  const gone = tf.zeros([2]);
  gone.dispose();
  return gone;
}

function sparse() {
  const weight = tf.zeros([5, 2], { requiresGrad: true });
  tf.callTensor('aten::embedding', weight, tf.tensor([1n, 3n, 1n]), -1, false, true)
    .sum()
    .backward();
  return weight.grad;
}

function circular() {
  const list = [];
  list.push(list);
  return list;
}

/** The ways of a callback to be of no help. */
function callback(r) {
  return r.pick([
    () => undefined,
    () => 1,
    (x) => x,
    () => tf.zeros([2, 3]),
    () => disposed(),
    () => Promise.resolve(1),
    () => {
      throw new FromCallback('thrown by a callback');
    },
  ]);
}

/** What our own callbacks throw has to come out as it is. */
export class FromCallback extends Error {}

const optionNames = [
  ...[
    'dim',
    'keepdim',
    'dtype',
    'device',
    'requiresGrad',
    'shape',
    'correction',
    'largest',
    'sorted',
  ],
  ...[
    'descending',
    'stable',
    'mask',
    'dropout',
    'ignoreIndex',
    'reduction',
    'bias',
    'eps',
    'min',
    'max',
  ],
  ...[
    'nan',
    'value',
    'alpha',
    'beta',
    'offset',
    'retainGraph',
    'gradient',
    'indexing',
    'lr',
    'maxLen',
  ],
];

function options(r) {
  const result = {};
  for (let count = r.below(3); count >= 0; count--) result[r.pick(optionNames)] = anything(r, 1);
  return result;
}

/** A value of a kind that few parameters take. */
export function odd(r) {
  const made = r.below(22);
  switch (made) {
    case 0:
      return undefined;
    case 1:
      return null;
    case 2:
      return r.pick(oddNumbers);
    case 3:
      return r.pick([0n, -1n, 2n ** 62n, 2n ** 64n, -(2n ** 70n)]);
    case 4:
      return r.pick([
        '',
        'x',
        'float32',
        'complex64',
        '0',
        '\u0000',
        '\ud800',
        'cpu',
        'cuda:9',
        'sum',
      ]);
    case 5:
      return r.chance(50);
    case 6:
      return Symbol('s');
    case 7:
      return callback(r);
    case 8:
      return r.pick([{}, Object.create(null), { a: 1 }, { length: 3 }, { length: 2 ** 40 }]);
    case 9:
      return r.pick([
        [],
        [null],
        [undefined],
        ['x'],
        [[]],
        [[1], [1, 2]],
        [2 ** 40, 2 ** 40],
        [NaN],
      ]);
    case 10:
      return circular();
    case 11:
      return r.pick([
        new Float32Array(3),
        new Uint8Array(0),
        new BigInt64Array(2),
        new ArrayBuffer(5),
      ]);
    case 12:
      return r.pick([new Map(), new Set([1]), new Date(0), /x/, new Error('e')]);
    case 13:
      return Promise.resolve(1);
    case 14:
      return disposed();
    case 15:
      return Object.create(tf.Tensor.prototype);
    case 16:
      return new Proxy({}, { get: () => 1 });
    case 17:
      return sparse();
    case 18:
      return class {};
    case 19:
      return r.pick([new DataView(new ArrayBuffer(3)), AbortSignal.abort(), new URL('file:///x')]);
    case 20:
      return [tensor(r), disposed()];
    default:
      return tensor(r);
  }
}

/** Mostly what methods of tensors take. */
export function anything(r, depth = 0) {
  const kind = r.below(100);
  if (kind < 38) return tensor(r);
  if (kind < 62) return r.pick(numbers);
  if (kind < 70) return r.list(0, 4, () => r.below(9) - 3);
  if (kind < 74) return r.list(0, 3, () => tensor(r));
  if (kind < 78) return r.chance(50);
  if (kind < 81)
    return r.pick([...dtypes, 'sum', 'mean', 'none', 'same', 'ij,jk->ik', '...', '1:', ':-1']);
  if (kind < 88 && depth < 2) return options(r);
  return odd(r);
}
