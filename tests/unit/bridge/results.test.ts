import { describe, expect, it } from 'vitest';
import { call, callAsync, callTensor, memory, tensor, Tensor, tidy, zeros } from 'torchformer';

describe('the result of an op', () => {
  it('is a Tensor, or an array of them for tuples and lists', () => {
    const x = tensor([3, 1, 2]);
    expect(call('aten::neg', x)).toBeInstanceOf(Tensor);
    const pair = call('aten::sort', x) as [Tensor, Tensor];
    expect(pair.map((t) => t.toArray())).toEqual([
      [1, 2, 3],
      [1, 2, 0],
    ]);
    const parts = call('aten::split.Tensor', x, 2) as Tensor[];
    expect(parts.map((t) => t.toArray())).toEqual([[3, 1], [2]]);
  });

  it('is null for an undefined tensor', () => {
    const mask = [true, false, false];
    const ones = tensor([[1, 1]]);
    const args = [ones, ones, [2], zeros([1, 1]), zeros([1, 1]), null, null, mask];
    expect((call('aten::native_layer_norm_backward', ...args) as unknown[]).slice(1)).toEqual([
      null,
      null,
    ]);
  });

  it('is undefined when the op returns nothing', () => {
    const x = tensor([1]);
    expect(call('aten::_foreach_add_.Scalar', [x], 1)).toBeUndefined();
    expect(x.toArray()).toEqual([2]);
  });

  it('is a number, boolean, string, or a BigInt where a number would lose digits', () => {
    expect(call('aten::item', tensor(1.5))).toBe(1.5);
    expect(call('aten::item', tensor(7n))).toBe(7);
    expect(call('aten::item', tensor(2n ** 53n - 1n))).toBe(2 ** 53 - 1);
    expect(call('aten::item', tensor(2n ** 53n))).toBe(2n ** 53n);
    expect(call('aten::item', tensor(-(2n ** 63n)))).toBe(-(2n ** 63n));
    expect(call('aten::item', tensor(true))).toBe(true);
    expect(call('aten::item', tensor(NaN))).toBeNaN();
    expect(call('aten::size.int', zeros([2, 5]), 1)).toBe(5);
    expect(call('aten::equal', tensor([1]), tensor([1]))).toBe(true);
    expect(call('aten::result_type.Tensor', tensor([1n]), tensor([0.5]))).toBe('float32');
  });
});

describe('an in-place or out op', () => {
  it('gives back the very Tensor that was passed in, and makes no other', () => {
    tidy(() => {
      const x = tensor([1, 2]);
      const out = zeros([2]);
      const before = memory().tensors;
      expect(call('aten::add_.Scalar', x, 1)).toBe(x);
      expect(call('aten::add.out', x, x, { out })).toBe(out);
      expect(out.toArray()).toEqual([4, 6]);
      expect(memory().tensors).toBe(before);
    });
  });

  it('with several results gives back each', () => {
    const [values, indices] = [zeros([0]), zeros([0], { dtype: 'int64' })];
    const result = call('aten::sort.values', tensor([2, 1]), { values, indices }) as Tensor[];
    expect([result[0] === values, result[1] === indices]).toEqual([true, true]);
    expect([values.toArray(), indices.toArray()]).toEqual([
      [1, 2],
      [1, 0],
    ]);
  });

  it('does so off the event loop too', async () => {
    const x = tensor([1]);
    expect(await callAsync('aten::mul_.Scalar', x, 3)).toBe(x);
    expect(x.toArray()).toEqual([3]);
  });
});

describe('a view', () => {
  it('is a Tensor of its own on the same memory', () => {
    const x = zeros([2]);
    const same = callTensor('aten::to.dtype', x, 'float32');
    expect(same === x).toBe(false);
    x.fill_(1);
    x.dispose();
    expect(same.toArray()).toEqual([1, 1]);
  });
});
