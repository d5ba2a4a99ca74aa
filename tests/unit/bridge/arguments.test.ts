import { describe, expect, it } from 'vitest';
import {
  arange,
  call,
  callTensor,
  callTensors,
  float,
  full,
  ones,
  ops,
  tensor,
  Tensor,
  TorchError,
  zeros,
} from 'torchformer';

const x = arange(6, { dtype: 'float32' }).reshape(2, 3);

function errorOf(run: () => unknown): TorchError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(TorchError);
    return error as TorchError;
  }
  throw new Error('nothing was thrown');
}

describe('an int argument', () => {
  it('takes safe integers and BigInts of 64 bits', () => {
    expect(callTensor('aten::select.int', x, 0, 1).toArray()).toEqual([3, 4, 5]);
    expect(callTensor('aten::select.int', x, 0n, -1n).toArray()).toEqual([3, 4, 5]);
    const end = 2n ** 63n - 1n;
    expect(callTensor('aten::slice.Tensor', x, 0, 0, end).shape).toEqual([2, 3]);
  });

  it.each([
    NaN,
    1.5,
    Infinity,
    2 ** 53 + 2,
    -(2 ** 53),
    2n ** 63n,
    '1',
    true,
    null,
    undefined,
    [1],
  ])('refuses %s instead of guessing an integer', (value) => {
    const error = errorOf(() => call('aten::select.int', x, 0, value));
    expect(error.code).toBe('ERR_ARGUMENT');
    expect(error.message).toMatch(/^aten::select\.int: argument 'index' \(int\)/);
  });

  it('in a list names the place of the fault', () => {
    const error = errorOf(() => call('aten::reshape', x, [3, 2.5]));
    expect([error.code, error.message]).toEqual([
      'ERR_ARGUMENT',
      expect.stringContaining("argument 'shape'[1]"),
    ]);
  });
});

describe('a Scalar argument', () => {
  const ints = tensor([1, 2], { dtype: 'int32' });

  it('is an integer for integer-valued numbers, so integer tensors stay integer', () => {
    expect(callTensor('aten::mul.Scalar', ints, 2).dtype).toBe('int32');
    expect(callTensor('aten::mul.Scalar', ints, -3n).dtype).toBe('int32');
    expect(callTensor('aten::mul.Scalar', ints, true).dtype).toBe('int32');
  });

  it('is a double for all other numbers and inside float()', () => {
    expect(callTensor('aten::mul.Scalar', ints, 2.5).dtype).toBe('float32');
    expect(callTensor('aten::mul.Scalar', ints, float(2)).dtype).toBe('float32');
    expect(callTensor('aten::mul.Scalar', ints, NaN).toArray()).toEqual([NaN, NaN]);
    expect(callTensor('aten::mul.Scalar', ints, Infinity).dtype).toBe('float32');
    expect(callTensor('aten::mul.Scalar', ones([1]), -0).data()).toEqual(new Float32Array([-0]));
    const large = callTensor('aten::mul.Scalar', ones([1], { dtype: 'float64' }), 2 ** 70);
    expect(large.item()).toBe(2 ** 70);
  });

  it('keeps all digits of a BigInt', () => {
    const odd = 2n ** 53n + 1n;
    expect(callTensor('aten::add.Scalar', zeros([1], { dtype: 'int64' }), odd).data()).toEqual(
      new BigInt64Array([odd]),
    );
  });

  it('decides the dtype of raw aten::full and aten::arange, where none is named', () => {
    expect(callTensor('aten::full', [1], 2).dtype).toBe('int64');
    expect(callTensor('aten::full', [1], float(2)).dtype).toBe('float32');
    expect(callTensor('aten::arange', 3).dtype).toBe('int64');
    expect(callTensor('aten::arange', float(3)).dtype).toBe('float32');
  });

  it('refuses anything else', () => {
    for (const value of ['2', null, [2], {}, Symbol('s'), 2n ** 64n]) {
      expect(errorOf(() => call('aten::mul.Scalar', ints, value)).code).toBe('ERR_ARGUMENT');
    }
    expect(() => float('2' as never)).toThrow(TypeError);
  });

  it('in lists: Scalar[]', () => {
    const made = callTensors('aten::_foreach_mul.ScalarList', [ints, ints], [2, 2.5]);
    expect(made.map((t) => [t.dtype, t.toArray()])).toEqual([
      ['int32', [2, 4]],
      ['float32', [2.5, 5]],
    ]);
  });
});

describe('the other kinds of arguments', () => {
  it('dtypes by name; an unknown name lists the known ones', () => {
    expect(callTensor('aten::zeros', [1], { dtype: 'bfloat16' }).dtype).toBe('bfloat16');
    expect(callTensor('aten::softmax.int', x, 1, 'float64').dtype).toBe('float64');
    const error = errorOf(() => call('aten::zeros', [1], { dtype: 'f32' }));
    expect([error.code, error.message]).toEqual([
      'ERR_ARGUMENT',
      expect.stringMatching(/'dtype' .* must be one of float32, float64, .*"f32"/),
    ]);
    // 6 is float32's number inside libtorch; numbers are no names.
    expect(errorOf(() => call('aten::zeros', [1], { dtype: 6 })).code).toBe('ERR_ARGUMENT');
  });

  it('devices, layouts and memory formats by name', () => {
    const named = { device: 'cpu', layout: 'strided', memory_format: 'contiguous_format' };
    expect(callTensor('aten::empty.memory_format', [2], named).device).toBe('cpu');
    expect(
      callTensor('aten::clone', x.t(), { memory_format: 'contiguous_format' }).isContiguous,
    ).toBe(true);
    for (const wrong of [
      { device: 'gpu' },
      { device: 0 },
      { layout: 'dense' },
      { memory_format: 1 },
    ]) {
      expect(errorOf(() => call('aten::empty.memory_format', [2], wrong)).code).toBe(
        'ERR_ARGUMENT',
      );
    }
  });

  it('one number in place of int[N]', () => {
    const image = arange(16, { dtype: 'float32' }).reshape(1, 4, 4);
    expect(callTensor('aten::max_pool2d', image, 2).toArray()).toEqual(
      callTensor('aten::max_pool2d', image, [2, 2]).toArray(),
    );
    expect(callTensor('aten::sum.dim_IntList', x, 0).toArray()).toEqual([3, 5, 7]);
    expect(errorOf(() => call('aten::reshape', x, 6)).message).toMatch(/must be an array, got 6/);
  });

  it('missing tensors in Tensor?[] and Tensor? as null', () => {
    const index = tensor([2n, 0n]);
    expect(callTensor('aten::index.Tensor', x, [null, index]).toArray()).toEqual([
      [2, 0],
      [5, 3],
    ]);
    expect(callTensor('aten::linear', x, ones([1, 3]), null).toArray()).toEqual([[3], [12]]);
    expect(callTensor('aten::linear', x, ones([1, 3]), undefined).toArray()).toEqual([[3], [12]]);
    expect(errorOf(() => call('aten::relu', null)).code).toBe('ERR_ARGUMENT');
    expect(errorOf(() => call('aten::cat', [x, null])).message).toMatch(/'tensors'\[1\]/);
  });

  it('float[] and bool[]', () => {
    const line = tensor([[[1, 2]]]);
    expect(callTensor('aten::upsample_nearest1d.vec', line, null, [2]).toArray()).toEqual([
      [[1, 1, 2, 2]],
    ]);
    const args = [ones([2, 3]), x, [3], zeros([2, 1]), ones([2, 1]), null, null];
    const both = callTensors('aten::native_layer_norm_backward', ...args, [true, false, false]);
    expect(both.map((t) => t?.shape ?? null)).toEqual([[2, 3], null, null]);
    expect(
      errorOf(() => call('aten::native_layer_norm_backward', ...args, [true, 0, false])).message,
    ).toMatch(/'output_mask'\[1\]/);
  });

  it('strings', () => {
    expect(
      callTensor('aten::div.Scalar_mode', tensor([-3]), 2, { rounding_mode: 'floor' }).toArray(),
    ).toEqual([-2]);
    expect(
      errorOf(() => call('aten::div.Scalar_mode', x, 2, { rounding_mode: 1 })).message,
    ).toMatch(/'rounding_mode' .* must be a string, got 1/);
  });

  it('booleans are booleans, not numbers', () => {
    expect(callTensor('aten::argmax', x, 1, true).shape).toEqual([2, 1]);
    expect(errorOf(() => call('aten::argmax', x, 1, 1)).code).toBe('ERR_ARGUMENT');
  });

  it('a generator is never given: the environment has one', () => {
    expect(callTensor('aten::randn.generator', [2]).shape).toEqual([2]);
    expect(errorOf(() => call('aten::randn.generator', [2], { generator: 1 })).message).toMatch(
      /manualSeed/,
    );
  });
});

describe('arguments by name', () => {
  it('come in a trailing plain object, keyword-only ones and others', () => {
    expect(callTensor('aten::add.Tensor', x, x, { alpha: 10 }).toArray()).toEqual([
      [0, 11, 22],
      [33, 44, 55],
    ]);
    expect(callTensor('aten::sum.dim_IntList', x, { keepdim: true, dim: [1] }).shape).toEqual([
      2, 1,
    ]);
    expect(callTensor('aten::sum.dim_IntList', x, { dim: [1], keepdim: undefined }).shape).toEqual([
      2,
    ]);
  });

  it('are refused when keyword-only ones come by position', () => {
    expect(errorOf(() => call('aten::add.Tensor', x, x, 10)).message).toBe(
      'aten::add.Tensor takes at most 2 positional arguments, got 3',
    );
  });

  it('are refused when unknown, missing or given twice', () => {
    expect(errorOf(() => call('aten::add.Tensor', x, x, { beta: 1 })).message).toBe(
      'aten::add.Tensor: unknown argument "beta"; its arguments: self, other, alpha',
    );
    expect(errorOf(() => call('aten::add.Tensor', x)).message).toMatch(
      /argument 'other' \(Tensor\) is missing/,
    );
    expect(errorOf(() => call('aten::add.Tensor', x, x, { other: x })).message).toMatch(
      /'other' is given twice/,
    );
    expect(errorOf(() => call('aten::relu')).message).toMatch(/'self' \(Tensor\) is missing/);
  });
});

describe('a Tensor argument', () => {
  it('must be a live Tensor made by native code', () => {
    for (const value of [
      1,
      'x',
      [1],
      new Float32Array(1),
      () => x,
      Object.create(Tensor.prototype),
    ]) {
      expect(errorOf(() => call('aten::add.Tensor', value, x)).code).toBe('ERR_ARGUMENT');
    }
    const Made = Tensor as unknown as new () => Tensor;
    expect(errorOf(() => call('aten::add.Tensor', new Made(), x)).code).toBe('ERR_ARGUMENT');
    const gone = zeros([1]);
    gone.dispose();
    const error = errorOf(() => call('aten::add.Tensor', x, gone));
    expect([error.code, error.message]).toEqual([
      'ERR_DISPOSED',
      expect.stringContaining("argument 'other'"),
    ]);
  });
});

describe('ops', () => {
  it('finds the overload by the kinds of the arguments, or takes the one named', () => {
    expect(ops.aten.relu(tensor([-1, 1])).toArray()).toEqual([0, 1]);
    expect(ops.aten.add(tensor([1]), 1).toArray()).toEqual([2]);
    expect(ops.aten.add(tensor([1]), tensor([2])).toArray()).toEqual([3]);
    const scalar = ops.aten.full([2], 1.5);
    expect(scalar.toArray()).toEqual([1.5, 1.5]);
    expect(ops.aten.softmax.int(full([2], 1), -1).toArray()).toEqual([0.5, 0.5]);
  });

  it('lists why each overload refused', () => {
    const error = errorOf(() => ops.aten.add('x' as never, 'y' as never));
    expect([error.code, error.message]).toEqual([
      'ERR_ARGUMENT',
      expect.stringMatching(/^aten::add: no overload accepts these arguments:\n {2}aten::add/),
    ]);
  });

  it('says what is not there', () => {
    type Untyped = Record<string, (() => unknown) & Record<string, (x: unknown) => unknown>>;
    const unknownOps = ops.aten as unknown as Untyped;
    expect(errorOf(() => unknownOps.nothing_like_it?.()).code).toBe('ERR_UNKNOWN_OP');
    expect(errorOf(() => unknownOps.relu?.nope?.(x)).code).toBe('ERR_UNKNOWN_OP');
    expect(errorOf(() => call('relu', x)).code).toBe('ERR_UNKNOWN_OP');
    expect(errorOf(() => call('', x)).code).toBe('ERR_UNKNOWN_OP');
    expect(errorOf(() => call('aten::add.', x, x)).code).toBe('ERR_UNKNOWN_OP');
  });

  it('can be awaited by accident without being taken for a promise', async () => {
    expect(await (ops as unknown)).toBe(ops);
    expect(await (ops.aten as unknown)).toBe(ops.aten);
  });

  it('refuses ops with arguments that JavaScript has no form for', () => {
    const error = errorOf(() => call('aten::set_.source_Storage', x, 1));
    expect([error.code, error.message]).toEqual([
      'ERR_NOT_IMPLEMENTED',
      expect.stringMatching(/'source' is of type Storage/),
    ]);
  });
});
