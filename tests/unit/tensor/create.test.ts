import { describe, expect, it } from 'vitest';
import {
  arange,
  byteSize,
  empty,
  emptyLike,
  eye,
  float,
  fromBytes,
  full,
  fullLike,
  isFloatingPoint,
  isTensor,
  linspace,
  ones,
  onesLike,
  rand,
  randint,
  randperm,
  tensor,
  Tensor,
  zeros,
  zerosLike,
  type DType,
} from 'torchformer';

describe('tensor(nested arrays)', () => {
  it('has the shape of the nesting and float32 elements', () => {
    const x = tensor([
      [1, 2.5, -3],
      [4, 5, 6],
    ]);
    expect(x.shape).toEqual([2, 3]);
    expect([x.ndim, x.numel, x.dtype, x.device]).toEqual([2, 6, 'float32', 'cpu']);
    expect(x.toArray()).toEqual([
      [1, 2.5, -3],
      [4, 5, 6],
    ]);
    expect(isTensor(x)).toBe(true);
    expect(x).toBeInstanceOf(Tensor);
  });

  it('takes a single number as a 0-dim tensor', () => {
    const x = tensor(2.5);
    expect([x.shape, x.ndim, x.numel, x.item()]).toEqual([[], 0, 1, 2.5]);
  });

  it('chooses bool for booleans and int64 for bigints, else float32', () => {
    expect(tensor([true, false]).dtype).toBe('bool');
    expect(tensor(true).dtype).toBe('bool');
    expect(tensor([1n, -2n]).dtype).toBe('int64');
    expect(tensor([1, 2]).dtype).toBe('float32');
    expect(tensor([]).dtype).toBe('float32');
  });

  it('keeps the zero sizes of empty arrays', () => {
    expect(tensor([]).shape).toEqual([0]);
    expect(tensor([[], []]).shape).toEqual([2, 0]);
    expect(tensor([[], []]).toArray()).toEqual([[], []]);
  });

  it('writes numbers into every dtype', () => {
    const dtypes: DType[] = [
      'float32',
      'float64',
      'float16',
      'bfloat16',
      'int8',
      'int16',
      'int32',
      'int64',
      'uint8',
    ];
    for (const dtype of dtypes) {
      const x = tensor([[0, 1, 2]], { dtype });
      expect([x.dtype, x.shape, x.toArray()]).toEqual([dtype, [1, 3], [[0, 1, 2]]]);
    }
    expect(tensor([1, 0, true], { dtype: 'bool' }).toArray()).toEqual([true, false, true]);
  });

  it('marks leaves that require gradients', () => {
    expect(tensor([1], { requiresGrad: true }).requiresGrad).toBe(true);
    expect(tensor([1]).requiresGrad).toBe(false);
    expect(() => tensor([1], { dtype: 'int64', requiresGrad: true })).toThrow(
      /tensor: only floating-point tensors can require gradients, this one is int64/,
    );
  });
});

describe('tensor() refuses', () => {
  const cases: [what: string, run: () => unknown, error: ErrorConstructor, message: string][] = [
    [
      'rows of different length',
      () =>
        tensor([
          [1, 2],
          [1, 2, 3],
        ]),
      RangeError,
      'data[1] has 3 elements, data[0] has 2',
    ],
    [
      'ragged rows deep inside',
      () =>
        tensor([
          [[1], [2]],
          [[3], []],
        ]),
      RangeError,
      'data[1][1] has 0 elements, data[0][0] has 1',
    ],
    ['a number beside rows', () => tensor([[1], 2] as never), TypeError, 'data[1] is 2, data[0]'],
    ['a row beside numbers', () => tensor([1, [2]] as never), TypeError, 'data[1]'],
    [
      'arrays that hold themselves',
      () => tensor(circular() as never),
      RangeError,
      '64 arrays deep',
    ],
    ['cycles beside numbers', () => tensor([1, circular()] as never), TypeError, 'data[1] must be'],
    ['strings', () => tensor(['1'] as never), TypeError, 'data[0] must be a number, bigint or'],
    ['null', () => tensor([1, null] as never), TypeError, 'data[1]'],
    ['holes', () => tensor([1, , 2] as never), TypeError, 'data[1]'],
    ['undefined', () => tensor(undefined as never), TypeError, 'data must be a number'],
    ['kinds mixed', () => tensor([1, true]), TypeError, 'data[1] is a boolean, data[0] a number'],
    ['bigints as floats', () => tensor([1n], { dtype: 'float32' }), TypeError, 'use Number(x)'],
    ['a Tensor', () => tensor(tensor([1]) as never), TypeError, 'clone()'],
    ['Tensors inside', () => tensor([tensor([1])] as never), TypeError, 'stack'],
    ['fractions as int', () => tensor([1.5], { dtype: 'int64' }), RangeError, 'data[0] must be an'],
    ['NaN as int', () => tensor([0, NaN], { dtype: 'int32' }), RangeError, 'data[1] must be an'],
    ['NaN as bool', () => tensor([NaN], { dtype: 'bool' }), TypeError, 'data[0]'],
    ['2 as bool', () => tensor([2], { dtype: 'bool' }), TypeError, 'true, false, 1 or 0'],
    ['300 as uint8', () => tensor([300], { dtype: 'uint8' }), RangeError, 'from 0 to 255'],
    ['-129 as int8', () => tensor([-129], { dtype: 'int8' }), RangeError, 'from -128 to 127'],
    ['unsafe integers', () => tensor([2 ** 53], { dtype: 'int64' }), RangeError, 'bigint'],
    ['65-bit integers', () => tensor([2n ** 63n]), RangeError, 'data[0] must be from -9223372036'],
    ['unknown dtypes', () => tensor([1], { dtype: 'f32' as never }), TypeError, 'float32, float64'],
    ['Python names', () => tensor([1], { dtype: 'torch.int8' as never }), TypeError, "'int8'"],
    ['unknown options', () => tensor([1], { dype: 'int8' } as never), TypeError, 'dtype'],
    ['unknown devices', () => tensor([1], { device: 'gpu' as never }), TypeError, "'cuda'"],
    ['Uint16Array', () => tensor(new Uint16Array(1) as never), TypeError, 'a Uint16Array'],
    ['DataView', () => tensor(new DataView(new ArrayBuffer(4)) as never), TypeError, 'fromBytes'],
    ['typed rows', () => tensor([new Float32Array(2)] as never), TypeError, 'a Float32Array'],
    ['wrong shape', () => tensor(new Float32Array(3), { shape: [2] }), RangeError, 'data has 3'],
  ];
  it.each(cases)('%s', (_what, run, error, message) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });
});

describe('tensor(typed array)', () => {
  it('keeps the kind of the array', () => {
    expect(tensor(new Float32Array([1.5])).dtype).toBe('float32');
    expect(tensor(new Float64Array([1.5])).dtype).toBe('float64');
    expect(tensor(new Int8Array([-1])).dtype).toBe('int8');
    expect(tensor(new Int16Array([-1])).dtype).toBe('int16');
    expect(tensor(new Int32Array([-1])).dtype).toBe('int32');
    expect(tensor(new BigInt64Array([-1n])).dtype).toBe('int64');
    expect(tensor(new Uint8Array([1])).dtype).toBe('uint8');
    expect(tensor(Buffer.from([1, 2])).toArray()).toEqual([1, 2]);
  });

  it('takes a shape and a dtype', () => {
    const x = tensor(new Float64Array([1, 2, 3, 4]), { shape: [2, 2], dtype: 'int32' });
    expect([x.dtype, x.toArray()]).toEqual([
      'int32',
      [
        [1, 2],
        [3, 4],
      ],
    ]);
  });

  it('reads only the part of the buffer that the view covers', () => {
    const whole = new Float32Array([1, 2, 3, 4]);
    expect(tensor(whole.subarray(1, 3)).toArray()).toEqual([2, 3]);
  });

  it('copies: later writes to the array change nothing', () => {
    const source = new Float32Array([1, 2]);
    const x = tensor(source);
    source[0] = 9;
    expect(x.toArray()).toEqual([1, 2]);
  });
});

describe('functions that fill', () => {
  it('zeros, ones, full, eye and their dtypes', () => {
    expect(zeros([2, 2]).toArray()).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(zeros(3).shape).toEqual([3]);
    expect(ones([2], { dtype: 'int64' }).data()).toEqual(new BigInt64Array([1n, 1n]));
    expect(empty([2, 0, 3]).shape).toEqual([2, 0, 3]);
    expect(eye(2, 3).toArray()).toEqual([
      [1, 0, 0],
      [0, 1, 0],
    ]);
    expect(full([2], 7).dtype).toBe('float32');
    expect(full([2], 7n).dtype).toBe('int64');
    expect(full([2], true).dtype).toBe('bool');
    expect(full([1], NaN).toArray()).toEqual([NaN]);
    expect(full([1], 7, { dtype: 'int8' }).toArray()).toEqual([7]);
  });

  it('arange of integers is int64, else float32', () => {
    expect(arange(3).data()).toEqual(new BigInt64Array([0n, 1n, 2n]));
    expect(arange(2, 5).toArray()).toEqual([2, 3, 4]);
    expect(arange(5, 0, -2).toArray()).toEqual([5, 3, 1]);
    expect([arange(0, 1, 0.5).dtype, arange(0, 1, 0.5).toArray()]).toEqual(['float32', [0, 0.5]]);
    expect(arange(float(3)).dtype).toBe('float32');
    expect(arange(3, { dtype: 'float64' }).dtype).toBe('float64');
    expect(arange(0).shape).toEqual([0]);
    expect(arange(2n ** 53n, 2n ** 53n + 2n).toArray()).toEqual([2n ** 53n, 2n ** 53n + 1n]);
  });

  it('linspace includes both ends', () => {
    expect(linspace(0, 1, 5).toArray()).toEqual([0, 0.25, 0.5, 0.75, 1]);
  });

  it('fullLike and emptyLike as well', () => {
    const like = tensor([1n, 2n]);
    expect([fullLike(like, 7).dtype, fullLike(like, 7).toArray()]).toEqual(['int64', [7, 7]]);
    expect(fullLike(like, 0.5, { dtype: 'float32' }).toArray()).toEqual([0.5, 0.5]);
    expect([emptyLike(like).shape, emptyLike(like).dtype]).toEqual([[2], 'int64']);
    expect(() => fullLike(like, like as never)).toThrow(/fullLike: value must be a number/);
  });

  it('zerosLike and onesLike take shape, dtype and device from a tensor', () => {
    const like = tensor([[1, 2]], { dtype: 'float64' });
    expect([zerosLike(like).dtype, zerosLike(like).toArray()]).toEqual(['float64', [[0, 0]]]);
    expect(onesLike(like, { dtype: 'int64' }).toArray()).toEqual([[1, 1]]);
    expect(onesLike(like, { dtype: 'int64' }).dtype).toBe('int64');
  });

  it('those after a tensor refuse options that are none', () => {
    const like = zeros([2]);
    for (const options of [null, 'int64', 3]) {
      const wrong = options as never;
      expect(() => zerosLike(like, wrong)).toThrow(/^zerosLike: options must be an object, got/);
      expect(() => fullLike(like, 1, wrong)).toThrow(/^fullLike: options must be an object, got/);
    }
    expect(() => zerosLike(like, { shape: [3] } as never)).toThrow(/unknown option "shape"/);
  });

  it('every function takes dtype and requiresGrad', () => {
    for (const make of [zeros, ones, empty, rand]) {
      const x = make([2], { dtype: 'float64', requiresGrad: true });
      expect([x.dtype, x.requiresGrad, x.isLeaf]).toEqual(['float64', true, true]);
    }
  });

  const faults: [what: string, run: () => unknown, message: RegExp][] = [
    ['negative sizes', () => zeros([2, -1]), /zeros: shape\[1\] must be an integer at least 0/],
    ['fractional sizes', () => ones([1.5]), /ones: shape\[0\]/],
    ['NaN sizes', () => zeros([NaN]), /zeros: shape\[0\]/],
    ['shapes of strings', () => zeros('2' as never), /zeros: shape must be an array of integers/],
    ['too many elements', () => zeros([2 ** 30, 2 ** 30]), /zeros: shape .* too many elements/],
    ['a string value', () => full([1], '1' as never), /full: value must be a number/],
    [
      'unknown options',
      () => zeros([1], { type: 'int8' } as never),
      /unknown option "type"; valid/,
    ],
    ['arange step 0', () => arange(0, 1, 0), /arange: step must not be 0/],
    [
      'arange the wrong way',
      () => arange(3, 0),
      /arange: step 1 has the wrong sign to get from 3 to 0/,
    ],
    ['arange to infinity', () => arange(Infinity), /arange: start, end and step must be finite/],
    ['arange without end', () => (arange as () => unknown)(), /arange: pass \(end\)/],
    ['randint without room', () => randint(3, 3, [1]), /randint: low must be below high/],
    ['randperm of -1', () => randperm(-1), /randperm: n must be an integer at least 0/],
  ];
  it.each(faults)('refuse %s', (_what, run, message) => {
    expect(run).toThrow(message);
    try {
      run();
    } catch (error) {
      expect(error instanceof TypeError || error instanceof RangeError).toBe(true);
    }
  });
});

describe('fromBytes', () => {
  it('reads back what bytes() gives, for every dtype', () => {
    for (const dtype of ['float32', 'float16', 'bfloat16', 'int64', 'uint8', 'bool'] as const) {
      const x = tensor([[1, 0, 1]], { dtype });
      const y = fromBytes(x.bytes(), x.shape, dtype);
      expect([y.dtype, y.toArray()]).toEqual([dtype, x.toArray()]);
    }
  });

  it('reads half floats as 16-bit patterns', () => {
    // 1.0 is 0x3C00 in float16 and 0x3F80 in bfloat16.
    expect(fromBytes(new Uint8Array([0x00, 0x3c]), [1], 'float16').toArray()).toEqual([1]);
    expect(fromBytes(new Uint16Array([0x3f80]), [1], 'bfloat16').toArray()).toEqual([1]);
  });

  it('takes an ArrayBuffer, and a part of one', () => {
    const buffer = new Float32Array([1, 2]).buffer;
    expect(fromBytes(buffer, [2], 'float32').toArray()).toEqual([1, 2]);
    expect(fromBytes(new Uint8Array(buffer, 4), [1], 'float32').toArray()).toEqual([2]);
  });

  it('reads bytes at any offset, also unaligned ones', () => {
    const bytes = new Uint8Array(9);
    bytes.set(new Uint8Array(new Float64Array([0.1]).buffer), 1);
    expect(fromBytes(bytes.subarray(1), [], 'float64').item()).toBe(0.1);
  });

  it('makes every non-zero byte true', () => {
    const x = fromBytes(new Uint8Array([0, 1, 2, 255]), [4], 'bool');
    expect(x.data()).toEqual(new Uint8Array([0, 1, 1, 1]));
  });

  it('refuses a number of bytes that does not fit', () => {
    expect(() => fromBytes(new Uint8Array(7), [2], 'float32')).toThrow(
      'fromBytes: shape [2] of float32 needs 8 bytes, got 7',
    );
    expect(() => fromBytes([1] as never, [1], 'uint8')).toThrow(TypeError);
    expect(() => fromBytes(new Uint8Array(1), [1], 'u8' as never)).toThrow(TypeError);
  });
});

function circular(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}

describe('facts of element types', () => {
  it('are known for all of them', () => {
    expect([byteSize('float64'), byteSize('bool'), byteSize('bfloat16')]).toEqual([8, 1, 2]);
    expect([isFloatingPoint('bfloat16'), isFloatingPoint('int64')]).toEqual([true, false]);
  });

  it.each(['x', 'toString', 'torch.float32', undefined, null])('are refused for %j', (dtype) => {
    const valid = /: dtype must be one of float32, float64, float16, bfloat16, int8, .*, got /;
    for (const fact of [byteSize, isFloatingPoint]) {
      expect(() => fact(dtype as DType)).toThrow(TypeError);
      expect(() => fact(dtype as DType)).toThrow(valid);
    }
  });
});
