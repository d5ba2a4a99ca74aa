import { describe, expect, it } from 'vitest';
import * as torchformer from 'torchformer';
import { call, tensor, Tensor, tidy, TorchError, zeros } from 'torchformer';
import { native } from '../../dist/tensor/dispatch.js';

/** Values of kinds that no schema takes, whatever the argument. */
const alien: [name: string, value: unknown][] = [
  ['a symbol', Symbol('s')],
  ['a function', () => undefined],
  ['a Map', new Map([[1, 2]])],
  ['a Date', new Date(0)],
  ['a regular expression', /x/],
  ['a typed array', new Float32Array(2)],
  ['an array of symbols', [Symbol('s')]],
  ['an array that holds itself', circular()],
];

function circular(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}

describe('every op of the dispatcher refuses values that no schema takes', () => {
  const names = native()
    .listOps()
    .filter((name) => /^(aten|torchformer)::/.test(name));

  it.each(alien)('%s as the first argument', (_name, value) => {
    for (const name of names) {
      // A second value keeps the first from being read as named arguments.
      expect(() => call(name, value, Symbol('second')), name).toThrow(TorchError);
    }
  });

  it('more arguments than any op has', () => {
    for (const name of names) {
      expect(() => call(name, ...Array<number>(60).fill(0)), name).toThrow(TorchError);
    }
  });

  it('named arguments that no op has', () => {
    for (const name of names) {
      expect(() => call(name, { no_such_argument: 1 }), name).toThrow(TorchError);
    }
  });
});

/** Repeatable pseudo-random integers below `limit`. */
function generator(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Odd, but of the kinds that methods take: wrong shapes, dtypes, ranges. */
function oddValues(): unknown[] {
  const disposed = zeros([1]);
  disposed.dispose();
  return [
    ...[0, 1, -1, 5, -7, 1.5, NaN, Infinity, -0, 300, 2 ** 53, -(2 ** 53), 1e300],
    ...[0n, -1n, 2n ** 62n, 2n ** 64n, '', 'cpu', 'float32', '0', true, false, null, undefined],
    ...[[], [0], [1, 2], [-1], [1.5], [2 ** 40, 2 ** 40], ['x'], [null], {}, { keepdim: true }],
    ...[{ dtype: 'float64' }, { device: 'nowhere' }, () => 1, Symbol('s'), disposed],
    ...[zeros([]), zeros([0]), zeros([2, 3]), zeros([3, 2]), zeros([2, 0, 3]), zeros([1, 1, 1, 1])],
    ...[tensor([true, false]), tensor([0n, 9n]), tensor([-1n]), zeros([3], { dtype: 'float16' })],
    ...[zeros([2, 3], { dtype: 'uint8' }), zeros([2, 2], { requiresGrad: true })],
  ];
}

function methodNames(): string[] {
  const names = new Set<string>();
  for (let proto: object = Tensor.prototype; proto !== Object.prototype;) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      if (typeof property.value === 'function' && name !== 'constructor') names.add(name);
    }
    proto = Object.getPrototypeOf(proto) as object;
  }
  names.delete('backwardAsync');
  return [...names].sort();
}

function isOrdinaryError(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof TorchError;
}

describe('odd arguments to the typed API give a result or an ordinary error', () => {
  const rounds = 60;

  it.each(methodNames())('Tensor.%s', (name) => {
    const next = generator(name.length * 7919 + name.charCodeAt(0));
    for (let round = 0; round < rounds; round++) {
      tidy(() => {
        const values = oddValues();
        const tensors = values.filter((value) => value instanceof Tensor);
        const self = tensors[next(tensors.length)] as unknown as Record<string, unknown>;
        const args = Array.from({ length: next(4) }, () => values[next(values.length)]);
        try {
          (self[name] as (...args: unknown[]) => unknown).apply(self, args);
        } catch (error) {
          expect(isOrdinaryError(error), `${name}: ${String(error)}`).toBe(true);
        }
      });
    }
  });

  const creators = [
    ...['tensor', 'fromBytes', 'zeros', 'ones', 'full', 'empty', 'arange', 'linspace', 'eye'],
    ...['rand', 'randn', 'randint', 'randperm', 'zerosLike', 'onesLike', 'cat', 'stack', 'where'],
    ...['grad', 'noGrad', 'manualSeed', 'setRngState', 'setNumThreads', 'tidy', 'keep', 'float'],
  ];
  it.each(creators)('%s()', (name) => {
    const run = (torchformer as unknown as Record<string, (...args: unknown[]) => unknown>)[name];
    expect(run).toBeTypeOf('function');
    const threads = torchformer.getNumThreads();
    const next = generator(name.length * 104729 + name.charCodeAt(1));
    for (let round = 0; round < rounds; round++) {
      tidy(() => {
        const values = oddValues();
        const args = Array.from({ length: next(5) }, () => values[next(values.length)]);
        try {
          run?.(...args);
        } catch (error) {
          expect(isOrdinaryError(error), `${name}: ${String(error)}`).toBe(true);
        }
      });
    }
    torchformer.setNumThreads(threads);
  });
});
