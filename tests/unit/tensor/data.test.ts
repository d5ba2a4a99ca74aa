import { MessageChannel } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import {
  arange,
  empty,
  full,
  keep,
  Linear,
  tensor,
  TorchError,
  zeros,
  type DType,
} from 'torchformer';

describe('elements come back as they went in', () => {
  it('NaN, infinities, minus zero and the smallest numbers', () => {
    const values = [NaN, Infinity, -Infinity, -0, 5e-324, 1.7976931348623157e308];
    expect(tensor(values, { dtype: 'float64' }).data()).toEqual(new Float64Array(values));
    const singles = [NaN, Infinity, -Infinity, -0, 2 ** -149, Math.fround(3.4e38)];
    expect(tensor(singles).data()).toEqual(new Float32Array(singles));
    expect(Object.is(tensor([-0]).data()[0], -0)).toBe(true);
  });

  it('64-bit integers without loss', () => {
    const values = [2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 0n];
    const x = tensor(values);
    expect(x.data()).toEqual(new BigInt64Array(values));
    expect(tensor(new BigInt64Array(values)).data()).toEqual(new BigInt64Array(values));
    expect(x.toArray()).toEqual([2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 0]);
  });

  it('every dtype as its typed array', () => {
    const kinds: [DType, new (n: number) => ArrayBufferView][] = [
      ['float32', Float32Array],
      ['float64', Float64Array],
      ['float16', Float32Array],
      ['bfloat16', Float32Array],
      ['int8', Int8Array],
      ['int16', Int16Array],
      ['int32', Int32Array],
      ['int64', BigInt64Array],
      ['uint8', Uint8Array],
      ['bool', Uint8Array],
    ];
    for (const [dtype, kind] of kinds) expect(zeros([2], { dtype }).data()).toBeInstanceOf(kind);
  });

  it('half floats round to the nearest value they have', () => {
    // float16 has 11 significant bits: 2049 lies between 2048 and 2050, ties to even.
    expect(tensor([2049, 65504, 65536, NaN], { dtype: 'float16' }).toArray()).toEqual([
      2048,
      65504,
      Infinity,
      NaN,
    ]);
    // bfloat16 has 8: 257 lies between 256 and 258.
    expect(tensor([257, 3e38], { dtype: 'bfloat16' }).toArray()).toEqual([
      256, 3.00405527047391e38,
    ]);
  });

  it('bool as booleans in arrays and as 0 and 1 in data', () => {
    const x = tensor([[true], [false]]);
    expect(x.toArray()).toEqual([[true], [false]]);
    expect(x.data()).toEqual(new Uint8Array([1, 0]));
  });

  it('zero-size tensors', () => {
    expect(zeros([0]).data()).toEqual(new Float32Array(0));
    expect(zeros([2, 0, 3]).toArray()).toEqual([[], []]);
    expect(zeros([0, 2]).toArray()).toEqual([]);
    expect(zeros([0], { dtype: 'float16' }).data()).toEqual(new Float32Array(0));
    expect(zeros([0]).bytes()).toEqual(new Uint8Array(0));
  });

  it('0-dim tensors', () => {
    expect(tensor(3).toArray()).toBe(3);
    expect(tensor(3n).data()).toEqual(new BigInt64Array([3n]));
    expect(tensor(true).toArray()).toBe(true);
  });

  it('views in their own order, whatever their memory', () => {
    const x = arange(12).reshape(3, 4);
    expect(x.t().isContiguous).toBe(false);
    expect(x.t().toArray()).toEqual([
      [0, 4, 8],
      [1, 5, 9],
      [2, 6, 10],
      [3, 7, 11],
    ]);
    expect(x.slice(1, 1, 4, 2).data()).toEqual(new BigInt64Array([1n, 3n, 5n, 7n, 9n, 11n]));
    expect(x.slice(1, 1, 4, 2).select(0, 2).bytes().byteLength).toBe(16);
    expect(tensor([7]).expand(3).toArray()).toEqual([7, 7, 7]);
    expect(
      tensor([[1.5, 2]])
        .half()
        .t()
        .toArray(),
    ).toEqual([[1.5], [2]]);
  });

  it('as copies: writing to them changes no tensor, and disposing takes nothing away', () => {
    const x = tensor([1, 2]);
    const copy = x.data() as Float32Array;
    copy[0] = 9;
    expect(x.toArray()).toEqual([1, 2]);
    x.dispose();
    expect(Array.from(copy)).toEqual([9, 2]);
  });

  it('also from tensors that require gradients', () => {
    const x = tensor([1, 2], { requiresGrad: true });
    expect(x.data()).toEqual(new Float32Array([1, 2]));
    expect(x.mul(2).half().data()).toEqual(new Float32Array([2, 4]));
  });
});

describe('item()', () => {
  it('gives the only element, whatever the dimensions', () => {
    expect(tensor([[2.5]]).item()).toBe(2.5);
    expect(tensor(7n).item()).toBe(7);
    expect(tensor(true).item()).toBe(1);
    expect(full([], NaN).item()).toBeNaN();
  });

  it('refuses several elements, none, and integers that no number holds', () => {
    expect(() => tensor([1, 2]).item()).toThrow(
      /item: needs a tensor with one element, got shape \[2\]/,
    );
    expect(() => empty([0]).item()).toThrow(RangeError);
    expect(() => tensor(2n ** 53n).item()).toThrow(
      /item: 9007199254740992 does not fit in a number/,
    );
  });
});

describe('conversions', () => {
  it('to() changes dtype, keeps what is not named', () => {
    const x = tensor([1.7, -1.7]);
    expect([x.to({ dtype: 'int64' }).dtype, x.long().toArray()]).toEqual(['int64', [1, -1]]);
    expect(x.double().dtype).toBe('float64');
    expect(x.half().dtype).toBe('float16');
    expect(x.int().dtype).toBe('int32');
    expect(tensor([0, 0.1]).bool().toArray()).toEqual([false, true]);
    expect(x.to({ device: 'cpu' }).dtype).toBe('float32');
    expect(x.long().float().toArray()).toEqual([1, -1]);
  });

  it('to() shares memory when nothing changes, unless copy is asked for', () => {
    const x = zeros([1]);
    const shared = x.to({ dtype: 'float32' });
    const copied = x.to({ dtype: 'float32', copy: true });
    x.fill_(5);
    expect([shared.item(), copied.item()]).toEqual([5, 0]);
  });

  it('to() on a machine without a GPU says so', () => {
    const error = catchError(() => tensor([1]).to({ device: 'cuda:7' })) as TorchError;
    expect(error).toBeInstanceOf(TorchError);
    expect(['ERR_CUDA_UNAVAILABLE', 'ERR_DEVICE']).toContain(error.code);
  });

  it('cpu(), cuda() and bfloat16() are to() in short', () => {
    const x = tensor([1.5]);
    expect([x.cpu().device, x.cpu().toArray(), x.bfloat16().dtype]).toEqual([
      'cpu',
      [1.5],
      'bfloat16',
    ]);
    expect(['ERR_CUDA_UNAVAILABLE', 'ERR_DEVICE']).toContain(
      (catchError(() => x.cuda(7)) as TorchError).code,
    );
    expect(() => x.cuda(-1)).toThrow('cuda: index must be an integer at least 0, got -1');
    expect(() => x.cuda('0' as never)).toThrow(TypeError);
  });

  it('to() refuses unknown dtypes, devices and options', () => {
    const x = tensor([1]);
    expect(() => x.to({ dtype: 'float' as never })).toThrow(/to: dtype must be one of float32/);
    expect(() => x.to({ device: 'cuda:x' as never })).toThrow(
      /to: device must be 'auto', 'cpu', 'cuda'/,
    );
    expect(() => x.to({ dtpye: 'float32' } as never)).toThrow(/unknown option "dtpye"/);
    expect(() => x.to('cuda' as never)).toThrow(/to: options must be an object/);
  });

  it('clone() has memory of its own, detach() shares it', () => {
    const x = tensor([1, 2]);
    const [cloned, detached] = [x.clone(), x.detach()];
    x.mul_(10);
    expect([cloned.toArray(), detached.toArray()]).toEqual([
      [1, 2],
      [10, 20],
    ]);
  });
});

describe('a disposed tensor', () => {
  it('throws ERR_DISPOSED at every use but isDisposed, dispose and printing', () => {
    const x = tensor([1]);
    const y = tensor([2]);
    x.dispose();
    const uses: (() => unknown)[] = [
      () => x.shape,
      () => x.dtype,
      () => x.numel,
      () => x.data(),
      () => x.toArray(),
      () => x.item(),
      () => x.grad,
      () => x.add(1),
      () => y.add(x),
      () => y.maskedFill(x, 0),
      () => x.backward(),
      () => (x.requiresGrad = true),
      () => (y.grad = x),
    ];
    for (const use of uses) expect((catchError(use) as TorchError).code).toBe('ERR_DISPOSED');
    expect(x.isDisposed).toBe(true);
    expect(String(x)).toBe('tensor(disposed)');
    expect(y.isDisposed).toBe(false);
  });

  it('may be disposed of again', () => {
    const x = tensor([1]);
    x.dispose();
    expect(() => x.dispose()).not.toThrow();
  });

  it('is what `using` leaves at the end of a block', () => {
    const x = tensor([1]);
    x[Symbol.dispose]();
    expect(x.isDisposed).toBe(true);
  });

  it('takes nothing from tensors that share its memory', () => {
    const x = arange(4);
    const view = x.reshape(2, 2);
    x.dispose();
    expect(view.toArray()).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('a clone of a tensor by JavaScript', () => {
  const expected = expect.objectContaining({
    name: 'DataCloneError',
    message: expect.stringMatching(/memory of a Tensor: send its data\(\) or bytes\(\)/) as string,
  }) as Error;

  it.each([
    ['a tensor', () => zeros([1])],
    ['one that is kept', () => keep(zeros([1]))],
    ['a Parameter', () => new Linear(1, 1).weight],
    ['a module', () => new Linear(1, 1)],
    ['a list with one', () => [1, zeros([1])]],
  ])('is refused for %s, with the way out', (_what, make) => {
    expect(() => structuredClone<unknown>(make())).toThrow(expected);
    const { port1, port2 } = new MessageChannel();
    expect(() => port1.postMessage(make())).toThrow(expected);
    port1.close();
    port2.close();
  });

  it('is possible for its elements', () => {
    const x = tensor([[1, 2]]);
    expect(structuredClone({ data: x.data(), shape: x.shape, dtype: x.dtype })).toEqual({
      data: Float32Array.of(1, 2),
      shape: [1, 2],
      dtype: 'float32',
    });
  });
});
