/** The checks of plain arguments that all folders share: what they let pass, and what they say. */
import { describe as group, expect, it } from 'vitest';
import { Buffer, ones, Parameter } from 'torchformer';
import {
  checkBoolean,
  checkChoice,
  checkFiniteNumber,
  checkNonNegative,
  checkNumber,
  checkPositive,
  checkPositiveOrInfinite,
  checkProbability,
  describe,
} from '../../../dist/runtime/arguments.js';

type Check = (owner: string, name: string, value: unknown) => unknown;

const refused = (check: Check, value: unknown): Error => {
  try {
    check('f', 'x', value);
  } catch (error) {
    return error as Error;
  }
  throw new Error('was not refused');
};

group('checks of numbers', () => {
  it.each<[Check, string, passes: number[], refuses: number[]]>([
    [checkNumber, 'a number', [0, -1.5, NaN, Infinity], []],
    [checkFiniteNumber, 'a finite number', [0, -1.5], [NaN, Infinity, -Infinity]],
    [checkNonNegative, 'a finite number of at least 0', [0, 1.5], [-1e-9, NaN, Infinity]],
    [checkPositive, 'a finite number above 0', [1e-9, 2], [0, -1, NaN, Infinity]],
    [checkPositiveOrInfinite, 'a number above 0', [1e-9, Infinity], [0, -1, NaN]],
    [checkProbability, 'a number from 0 to 1', [0, 0.5, 1], [-0.1, 1.1, NaN]],
  ])('%o wants %s', (check, expected, passes, refuses) => {
    for (const value of passes) expect(check('f', 'x', value)).toBe(value);
    for (const value of refuses) {
      const error = refused(check, value);
      expect(error).toBeInstanceOf(RangeError);
      expect(error.message).toBe(`f: x must be ${expected}, got ${value}`);
    }
    for (const [value, text] of [
      ['1', 'the string "1"'],
      [null, 'null'],
      [undefined, 'undefined'],
    ]) {
      const error = refused(check, value);
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toBe(`f: x must be ${expected}, got ${text}`);
    }
  });
});

it('a boolean is true or false, and nothing left out', () => {
  expect(checkBoolean('f', 'x', false)).toBe(false);
  for (const value of [0, 'true', null, undefined]) {
    expect(refused(checkBoolean, value).message).toMatch(/^f: x must be true or false, got /);
  }
});

it('a choice is one of the words, which the message lists', () => {
  const check: Check = (owner, name, value) => checkChoice(owner, name, value, ['a', 'b', 'c']);
  expect(check('f', 'x', 'b')).toBe('b');
  expect(refused(check, 'd').message).toBe(`f: x must be 'a', 'b' or 'c', got the string "d"`);
});

it('a tensor is described by its class, shape and dtype, whichever check names it', () => {
  expect(describe(ones([2, 3]))).toBe('a Tensor [2, 3] of float32');
  expect(describe(new Parameter(ones([2])))).toBe('a Parameter [2] of float32');
  expect(describe(new Buffer(ones([], { dtype: 'int64' })))).toBe('a Buffer [] of int64');
  const gone = ones([2]);
  gone.dispose();
  expect(describe(gone)).toBe('a disposed Tensor');
  expect(refused(checkNumber, ones([2])).message).toBe(
    'f: x must be a number, got a Tensor [2] of float32',
  );
});
