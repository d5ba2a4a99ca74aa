import { describe, expect, it } from 'vitest';
import { call, TorchError } from 'torchformer';
import { native } from '../../../dist/tensor/dispatch.js';

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
