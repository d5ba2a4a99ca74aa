import { describe, expect, it } from 'vitest';
import {
  arange,
  cat,
  float,
  full,
  ones,
  stack,
  tensor,
  where,
  zeros,
  type Tensor,
} from 'torchformer';

const list = (x: Tensor): unknown => x.toArray();
/** Rounded to 6 digits: for functions whose last bit may differ between machines. */
const near = (x: Tensor): number[] =>
  Array.from(x.double().data() as Float64Array, (v) => Number(v.toPrecision(6)));

describe('arithmetic', () => {
  it('adds, subtracts, multiplies and divides with tensors and numbers', () => {
    const a = tensor([1, 2, 3]);
    const b = tensor([10, 20, 30]);
    expect(list(a.add(b))).toEqual([11, 22, 33]);
    expect(list(a.add(0.5))).toEqual([1.5, 2.5, 3.5]);
    expect(list(a.add(b, { alpha: 2 }))).toEqual([21, 42, 63]);
    expect(list(b.sub(a))).toEqual([9, 18, 27]);
    expect(list(a.sub(1, { alpha: 3 }))).toEqual([-2, -1, 0]);
    expect(list(a.mul(b))).toEqual([10, 40, 90]);
    expect(list(b.div(a))).toEqual([10, 10, 10]);
    expect(list(a.pow(2))).toEqual([1, 4, 9]);
    expect(list(a.pow(a))).toEqual([1, 4, 27]);
    expect(list(a.maximum(tensor([2, 2, 2])))).toEqual([2, 2, 3]);
    expect(list(a.minimum(tensor([2, 2, 2])))).toEqual([1, 2, 2]);
    expect(list(tensor([-1, 5], { dtype: 'int64' }).remainder(3))).toEqual([2, 2]);
  });

  it('broadcasts', () => {
    const column = tensor([[1], [2]]);
    const row = tensor([10, 20, 30]);
    expect(list(column.mul(row))).toEqual([
      [10, 20, 30],
      [20, 40, 60],
    ]);
  });

  it('promotes as PyTorch does', () => {
    const ints = tensor([1, 2], { dtype: 'int32' });
    expect(ints.mul(2).dtype).toBe('int32');
    expect(ints.mul(2.5).dtype).toBe('float32');
    expect(ints.mul(float(2)).dtype).toBe('float32');
    expect(ints.add(tensor([1n, 2n])).dtype).toBe('int64');
    expect(ints.div(2).dtype).toBe('float32');
    expect(list(ints.div(2))).toEqual([0.5, 1]);
    expect([
      ints.div(2, { roundingMode: 'floor' }).dtype,
      list(tensor([-3]).div(2, { roundingMode: 'trunc' })),
    ]).toEqual(['int32', [-1]]);
    expect(tensor([true]).add(1).dtype).toBe('int64');
    expect(tensor([1], { dtype: 'float16' }).mul(2.5).dtype).toBe('float16');
  });

  it('takes numbers that are no 64-bit integers', () => {
    expect(list(tensor([1], { dtype: 'float64' }).mul(1e300))).toEqual([1e300]);
    expect(list(tensor([1]).add(NaN))).toEqual([NaN]);
    expect(list(tensor([1]).mul(-Infinity))).toEqual([-Infinity]);
    expect(Object.is(full([1], 1).mul(-0).item(), -0)).toBe(true);
    expect(list(tensor([1n]).add(2n ** 62n))).toEqual([2n ** 62n + 1n]);
  });

  it('in place gives the very same object back', () => {
    const x = tensor([1, 2]);
    expect(x.add_(1)).toBe(x);
    expect(x.mul_(tensor([2, 3]))).toBe(x);
    expect(x.sub_(1).div_(2)).toBe(x);
    expect(list(x)).toEqual([1.5, 4]);
    expect(list(x.copy_(tensor([7n])))).toEqual([7, 7]);
    expect(list(x.fill_(3))).toEqual([3, 3]);
    expect(list(x.fill_(tensor(4)))).toEqual([4, 4]);
    expect(list(x.zero_())).toEqual([0, 0]);
  });

  it('functions of one operand', () => {
    expect(list(tensor([-1.5, 2]).neg())).toEqual([1.5, -2]);
    expect(list(tensor([-1.5, 2]).abs())).toEqual([1.5, 2]);
    expect(list(tensor([-1.5, 0, 2]).sign())).toEqual([-1, 0, 1]);
    expect(list(tensor([4, 9]).sqrt())).toEqual([2, 3]);
    expect(list(tensor([4]).rsqrt())).toEqual([0.5]);
    expect(list(tensor([3]).square())).toEqual([9]);
    expect(list(tensor([4]).reciprocal())).toEqual([0.25]);
    expect(list(tensor([-1, 2]).relu())).toEqual([0, 2]);
    expect(list(tensor([1.5, -1.5, 2.5]).floor())).toEqual([1, -2, 2]);
    expect(list(tensor([1.5, -1.5, 2.5]).ceil())).toEqual([2, -1, 3]);
    expect(list(tensor([0.5, 1.5, 2.5]).round())).toEqual([0, 2, 2]);
    const x = tensor([0.5], { dtype: 'float64' });
    expect(near(x.exp())).toEqual([1.64872]);
    expect(near(x.log())).toEqual([-0.693147]);
    expect(near(x.sin())).toEqual([0.479426]);
    expect(near(x.cos())).toEqual([0.877583]);
    expect(near(x.tanh())).toEqual([0.462117]);
    expect(near(x.sigmoid())).toEqual([0.622459]);
    expect(list(tensor([-1]).sqrt())).toEqual([NaN]);
  });

  it('clamp leaves one side open on request', () => {
    const x = tensor([-2, 0, 2]);
    expect(list(x.clamp(-1, 1))).toEqual([-1, 0, 1]);
    expect(list(x.clamp(null, 1))).toEqual([-2, 0, 1]);
    expect(list(x.clamp(0))).toEqual([0, 0, 2]);
    expect(() => x.clamp()).toThrow(/clamp: pass min, max or both/);
  });
});

describe('comparison', () => {
  it('gives bool tensors', () => {
    const x = tensor([1, 2, 3]);
    expect(x.eq(2).dtype).toBe('bool');
    expect(list(x.eq(2))).toEqual([false, true, false]);
    expect(list(x.ne(2))).toEqual([true, false, true]);
    expect(list(x.lt(2))).toEqual([true, false, false]);
    expect(list(x.le(tensor(2)))).toEqual([true, true, false]);
    expect(list(x.gt(2))).toEqual([false, false, true]);
    expect(list(x.ge(2))).toEqual([false, true, true]);
  });

  it('combines truth values', () => {
    const [a, b] = [tensor([true, true, false]), tensor([true, false, false])];
    expect(list(a.logicalAnd(b))).toEqual([true, false, false]);
    expect(list(a.logicalOr(b))).toEqual([true, true, false]);
    expect(list(a.logicalNot())).toEqual([false, false, true]);
    expect([a.any().item(), a.all().item()]).toEqual([1, 0]);
    expect(
      list(
        tensor([
          [1, 0],
          [1, 1],
        ]).all(1, { keepdim: true }),
      ),
    ).toEqual([[false], [true]]);
    expect(
      list(
        tensor([
          [0, 0],
          [0, 1],
        ]).any(0),
      ),
    ).toEqual([false, true]);
  });

  it('tells NaN and infinities', () => {
    const x = tensor([NaN, Infinity, 1]);
    expect(list(x.isnan())).toEqual([true, false, false]);
    expect(list(x.isinf())).toEqual([false, true, false]);
    expect(list(x.isfinite())).toEqual([false, false, true]);
    expect(list(x.eq(NaN))).toEqual([false, false, false]);
  });

  it('of whole tensors', () => {
    expect(tensor([1, 2]).equal(tensor([1, 2]))).toBe(true);
    expect(tensor([1, 2]).equal(tensor([[1, 2]]))).toBe(false);
    expect(tensor([1]).allclose(tensor([1 + 1e-6]))).toBe(true);
    expect(tensor([1]).allclose(tensor([1.1]))).toBe(false);
    expect(tensor([1]).allclose(tensor([1.1]), { atol: 0.2 })).toBe(true);
    expect(tensor([NaN]).allclose(tensor([NaN]))).toBe(false);
    expect(tensor([NaN]).allclose(tensor([NaN]), { equalNan: true })).toBe(true);
  });
});

describe('shapes', () => {
  const x = arange(6).reshape(2, 3);

  it('reshape, view and flatten keep the order of elements', () => {
    expect(x.reshape(3, -1).shape).toEqual([3, 2]);
    expect(x.reshape([6]).toArray()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(x.view(1, 6).shape).toEqual([1, 6]);
    expect(x.t().reshape(6).toArray()).toEqual([0, 3, 1, 4, 2, 5]);
    expect(zeros([2, 3, 4]).flatten().shape).toEqual([24]);
    expect(zeros([2, 3, 4]).flatten(1).shape).toEqual([2, 12]);
    expect(zeros([2, 3, 4]).flatten(0, 1).shape).toEqual([6, 4]);
    expect(tensor([5]).reshape([]).shape).toEqual([]);
    expect(tensor([5]).reshape().shape).toEqual([]);
  });

  it('transpose, permute, squeeze, unsqueeze, expand', () => {
    const y = zeros([2, 3, 4]);
    expect(y.transpose(0, 2).shape).toEqual([4, 3, 2]);
    expect(y.transpose(-1, -2).shape).toEqual([2, 4, 3]);
    expect(y.permute(2, 0, 1).shape).toEqual([4, 2, 3]);
    expect(y.permute([1, 0, -1]).shape).toEqual([3, 2, 4]);
    expect(y.unsqueeze(0).unsqueeze(-1).shape).toEqual([1, 2, 3, 4, 1]);
    expect(zeros([1, 2, 1]).squeeze().shape).toEqual([2]);
    expect(zeros([1, 2, 1]).squeeze(0).shape).toEqual([2, 1]);
    expect(zeros([1, 2, 1]).squeeze(1).shape).toEqual([1, 2, 1]);
    expect(
      tensor([[1], [2]])
        .expand(2, 2)
        .toArray(),
    ).toEqual([
      [1, 1],
      [2, 2],
    ]);
    expect(tensor([1, 2]).expand([3, -1]).shape).toEqual([3, 2]);
    expect(x.t().contiguous().isContiguous).toBe(true);
    expect(x.strides).toEqual([3, 1]);
  });

  it('views share memory with their tensor', () => {
    const y = zeros([2, 2]);
    y.select(0, 1).fill_(7);
    y.narrow(1, 0, 1).add_(1);
    expect(y.toArray()).toEqual([
      [1, 0],
      [8, 7],
    ]);
  });

  it('select, narrow and slice', () => {
    expect(x.select(0, -1).toArray()).toEqual([3, 4, 5]);
    expect(x.narrow(1, 1, 2).toArray()).toEqual([
      [1, 2],
      [4, 5],
    ]);
    expect(x.slice(1, 1).shape).toEqual([2, 2]);
    expect(x.slice(1, 0, null, 2).toArray()).toEqual([
      [0, 2],
      [3, 5],
    ]);
    expect(x.slice(1, -1).toArray()).toEqual([[2], [5]]);
    expect(x.slice(0, 0, 99).shape).toEqual([2, 3]);
  });

  it('cat, stack, split and chunk', () => {
    expect(cat([x, x]).shape).toEqual([4, 3]);
    expect(cat([x, x.narrow(1, 0, 1)], 1).shape).toEqual([2, 4]);
    expect(stack([x, x, x]).shape).toEqual([3, 2, 3]);
    expect(stack([x, x], -1).shape).toEqual([2, 3, 2]);
    expect(
      arange(5)
        .split(2)
        .map((part) => part.toArray()),
    ).toEqual([[0, 1], [2, 3], [4]]);
    expect(x.chunk(3, 1).map((part) => part.shape)).toEqual([
      [2, 1],
      [2, 1],
      [2, 1],
    ]);
  });
});

describe('reductions', () => {
  const x = tensor([
    [1, 2, 6],
    [4, 3, 5],
  ]);

  it('sum and mean', () => {
    expect(x.sum().item()).toBe(21);
    expect(list(x.sum(0))).toEqual([5, 5, 11]);
    expect(list(x.sum(-1, { keepdim: true }))).toEqual([[9], [12]]);
    expect(x.sum([0, 1]).item()).toBe(21);
    expect(x.mean().item()).toBe(3.5);
    expect(list(x.mean(1))).toEqual([3, 4]);
    expect(tensor([true, true]).sum().dtype).toBe('int64');
    expect(tensor([1n, 2n]).sum(0, { dtype: 'float64' }).dtype).toBe('float64');
    expect(zeros([0]).sum().item()).toBe(0);
    expect(zeros([0]).mean().item()).toBeNaN();
  });

  it('variance and std of a sample, or of a population', () => {
    const y = tensor([1, 2, 3, 4], { dtype: 'float64' });
    expect(near(y.variance())).toEqual([1.66667]);
    expect(y.variance(0, { correction: 0 }).item()).toBe(1.25);
    expect(near(y.std())).toEqual([1.29099]);
    expect(x.std(1, { keepdim: true }).shape).toEqual([2, 1]);
  });

  it('max, min and their places', () => {
    expect([x.max().item(), x.min().item()]).toEqual([6, 1]);
    const { values, indices } = x.max(1);
    expect([list(values), list(indices), indices.dtype]).toEqual([[6, 5], [2, 2], 'int64']);
    expect(list(x.min(0, { keepdim: true }).values)).toEqual([[1, 2, 5]]);
    expect(x.argmax().item()).toBe(2);
    expect(list(x.argmax(1))).toEqual([2, 2]);
    expect(list(x.argmin(0))).toEqual([0, 0, 1]);
    expect(tensor([3, 3]).argmax(0).item()).toBe(0);
    expect(x.argmax(1, { keepdim: true }).shape).toEqual([2, 1]);
  });

  it('softmax, logSoftmax, logsumexp and cumsum', () => {
    const y = tensor([0, Math.log(3)], { dtype: 'float64' });
    expect(near(y.softmax(0))).toEqual([0.25, 0.75]);
    expect(near(y.logSoftmax(0))).toEqual([-1.38629, -0.287682]);
    expect(near(y.logsumexp(0))).toEqual([1.38629]);
    expect(near(tensor([1000, 1000]).logsumexp(0))).toEqual([1000.69]);
    expect(x.softmax(-1, { dtype: 'float64' }).dtype).toBe('float64');
    expect(list(x.cumsum(1))).toEqual([
      [1, 3, 9],
      [4, 7, 12],
    ]);
  });
});

describe('picking elements', () => {
  it('maskedFill, maskedSelect and where', () => {
    const x = tensor([1, 2, 3]);
    const mask = tensor([true, false, true]);
    expect(list(x.maskedFill(mask, -Infinity))).toEqual([-Infinity, 2, -Infinity]);
    expect(list(x.maskedFill(mask, tensor(9)))).toEqual([9, 2, 9]);
    expect(list(x.maskedSelect(mask))).toEqual([1, 3]);
    expect(list(x.where(mask, 0))).toEqual([1, 0, 3]);
    expect(list(where(mask, x, x.neg()))).toEqual([1, -2, 3]);
    expect(list(where(mask, 0.5, x))).toEqual([0.5, 2, 0.5]);
    expect(list(where(mask, 1, 0))).toEqual([1, 0, 1]);
  });

  it('gather, indexSelect and index', () => {
    const x = arange(6).reshape(2, 3);
    expect(list(x.gather(1, tensor([[2n], [0n]])))).toEqual([[2], [3]]);
    expect(list(x.indexSelect(1, tensor([2n, 0n, 2n])))).toEqual([
      [2, 0, 2],
      [5, 3, 5],
    ]);
    expect(list(x.index(tensor([1n, 0n])))).toEqual([
      [3, 4, 5],
      [0, 1, 2],
    ]);
    expect(list(x.index(':', tensor([-1n])))).toEqual([[2], [5]]);
    expect(list(x.index(tensor([0n, 1n]), tensor([1n, 2n])))).toEqual([1, 5]);
    expect(list(x.index(x.gt(3)))).toEqual([4, 5]);
  });
});

describe('matrix products', () => {
  it('matmul, mm and bmm', () => {
    const a = tensor([
      [1, 2],
      [3, 4],
    ]);
    expect(list(a.matmul(a))).toEqual([
      [7, 10],
      [15, 22],
    ]);
    expect(list(a.mm(a.t()))).toEqual([
      [5, 11],
      [11, 25],
    ]);
    expect(list(a.matmul(tensor([1, 1])))).toEqual([3, 7]);
    expect(
      tensor([1, 2])
        .matmul(tensor([3, 4]))
        .item(),
    ).toBe(11);
    expect(ones([5, 2, 3]).bmm(ones([5, 3, 4])).shape).toEqual([5, 2, 4]);
    expect(ones([6, 1, 2, 3]).matmul(ones([5, 3, 4])).shape).toEqual([6, 5, 2, 4]);
    expect(list(ones([2, 0]).matmul(ones([0, 2])))).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});

describe('faulty arguments name the parameter, what was expected and what came', () => {
  const x = zeros([2, 3]);
  const ints = zeros([2, 3], { dtype: 'int64' });
  const type = TypeError;
  const range = RangeError;
  const cases: [error: ErrorConstructor, message: string, run: () => unknown][] = [
    [
      range,
      'add: the tensor [2, 3] and other [4] cannot be broadcast: dimension -1 has sizes 3 and 4',
      () => x.add(zeros([4])),
    ],
    [
      type,
      'add: other must be a Tensor or a number, got an array of 2; wrap it: tensor([…])',
      () => x.add([1, 2] as never),
    ],
    [
      type,
      'mul: other must be a Tensor or a number, got the string "2"',
      () => x.mul('2' as never),
    ],
    [
      type,
      'mul: other must be a Tensor or a number, got undefined',
      () => x.mul(undefined as never),
    ],
    [type, 'mul: other must be a Tensor or a number, got null', () => x.mul(null as never)],
    [range, 'add: other must fit in 64 bits, got 9223372036854775808n', () => ints.add(2n ** 63n)],
    [
      type,
      'add: unknown option "beta"; valid options: alpha',
      () => x.add(1, { beta: 1 } as never),
    ],
    [
      type,
      "div: roundingMode must be 'trunc' or 'floor', got the string \"up\"",
      () => x.div(1, { roundingMode: 'up' as never }),
    ],
    [
      range,
      'add_: other [3, 3] cannot be broadcast to the shape [2, 3]',
      () => x.add_(zeros([3, 3])),
    ],
    [
      range,
      'copy_: source [2, 2, 3] cannot be broadcast to the shape [2, 3]',
      () => x.copy_(zeros([2, 2, 3])),
    ],
    [range, 'eq: the tensor [2, 3] and other [2] cannot be broadcast', () => x.eq(zeros([2]))],
    [type, 'logicalAnd: other must be a Tensor, got true', () => x.logicalAnd(true as never)],
    [range, 'reshape: [2, 3] has 6 elements, which cannot have the shape [4]', () => x.reshape(4)],
    [
      range,
      'reshape: [2, 3] has 6 elements, which cannot have the shape [-1, -1]; only one size may be -1',
      () => x.reshape(-1, -1),
    ],
    [
      range,
      'view: the memory of [3, 2] (strides [1, 3]) cannot be viewed as [6] without a copy; use reshape',
      () => x.t().view(6),
    ],
    [range, 'reshape: shape[0] must be an integer at least -1, got 1.5', () => x.reshape(1.5, 4)],
    [range, 'flatten: startDim must not be after endDim, got 1 and 0', () => x.flatten(1, 0)],
    [
      range,
      'transpose: dim1 must be from -2 to 1 for a tensor with 2 dimensions, got 2',
      () => x.transpose(0, 2),
    ],
    [range, 'transpose: dim0 must be an integer', () => x.transpose(0.5, 1)],
    [
      type,
      'transpose: dim1 must be an integer, got undefined',
      () => (x.transpose as (a: number) => unknown)(0),
    ],
    [
      range,
      't: needs at most 2 dimensions, got [1, 2, 3]; use transpose(a, b)',
      () => x.unsqueeze(0).t(),
    ],
    [
      range,
      'permute: dims must name each of the 2 dimensions once, got [0, 0]',
      () => x.permute(0, 0),
    ],
    [range, 'permute: dims[1] must be from -2 to 1', () => x.permute(0, 3)],
    [range, 'unsqueeze: dim must be from -3 to 2', () => x.unsqueeze(4)],
    [
      range,
      'expand: the tensor [2, 3] cannot be broadcast to the shape [2, 4]',
      () => x.expand(2, 4),
    ],
    [range, 'split: size must be an integer at least 1, got 0', () => x.split(0)],
    [
      range,
      'select: index 3 is out of range for dimension 1, which has size 3',
      () => x.select(1, 3),
    ],
    [
      range,
      'narrow: start 2 with length 2 is out of range for dimension 1, which has size 3',
      () => x.narrow(1, 2, 2),
    ],
    [range, 'slice: step must be an integer at least 1, got 0', () => x.slice(0, 0, 1, 0)],
    [range, 'sum: dim must be from -2 to 1 for a tensor with 2 dimensions, got 2', () => x.sum(2)],
    [
      type,
      'sum: dim must be an integer or an array of integers, got the string "0"',
      () => x.sum('0' as never),
    ],
    [
      type,
      'sum: unknown option "keepDim"; valid options: dtype, keepdim',
      () => x.sum(0, { keepDim: true } as never),
    ],
    [type, 'sum: keepdim must be true or false, got 1', () => x.sum(0, { keepdim: 1 as never })],
    [
      type,
      "mean: needs a floating-point tensor, got int64; convert it: to({ dtype: 'float32' })",
      () => ints.mean(),
    ],
    [type, 'std: needs a floating-point tensor, got int64', () => ints.std(0)],
    [type, 'softmax: needs a floating-point tensor, got int64', () => ints.softmax(0)],
    [type, 'max: keepdim requires dim', () => x.max(undefined as never, { keepdim: true })],
    [type, 'any: keepdim requires dim', () => x.any(undefined, { keepdim: true })],
    [range, 'max: a tensor without elements has no max', () => zeros([0]).max()],
    [range, 'argmax: a tensor without elements has no argmax', () => zeros([0]).argmax()],
    [range, 'max: dim must be from -2 to 1', () => x.max(5)],
    [range, 'softmax: dim must be from -2 to 1', () => x.softmax(2)],
    [type, 'softmax: dim must be an integer, got undefined', () => (x.softmax as () => unknown)()],
    [
      type,
      'maskedFill: mask must be a bool tensor, got float32; compare first, as in mask.ne(0)',
      () => x.maskedFill(x, 0),
    ],
    [
      range,
      'maskedFill: the tensor [2, 3] and mask [2] cannot be broadcast',
      () => x.maskedFill(tensor([true, true]), 0),
    ],
    [
      range,
      'maskedFill: value must be a number or a 0-dim tensor, got [1]',
      () => x.maskedFill(x.eq(0), zeros([1])),
    ],
    [type, 'where: condition must be a bool tensor, got float32', () => where(x, 1, 0)],
    [
      range,
      'where: condition [2, 3] and other [4] cannot be broadcast',
      () => where(x.eq(0), 1, zeros([4])),
    ],
    [
      type,
      'gather: index must be an int64 tensor, got float32; convert it with long()',
      () => x.gather(0, x),
    ],
    [
      range,
      'gather: index [3, 1, 1] must have as many dimensions as the tensor [2, 3]',
      () => x.gather(0, zeros([3, 1, 1], { dtype: 'int64' })),
    ],
    [range, 'indexSelect: index must have 1 dimension, got [2, 3]', () => x.indexSelect(0, ints)],
    [type, 'index: indices[0] must be int64 or bool, got float32', () => x.index(x)],
    [
      range,
      'matmul: the inner sizes must agree, got [2, 3] and [2, 3]: 3 and 2',
      () => x.matmul(x),
    ],
    [range, 'mm: needs shapes [R, K] and [K, C], got [2, 3] and [2, 3]', () => x.mm(x)],
    [range, 'bmm: needs shapes [B, R, K] and [B, K, C], got [2, 3] and [2, 3]', () => x.bmm(x)],
    [type, 'matmul: other must be a Tensor, got 2', () => x.matmul(2 as never)],
    [type, 'cat: tensors must be an array of Tensors, got a Tensor', () => cat(x as never)],
    [range, 'cat: tensors must not be empty', () => cat([])],
    [type, 'cat: tensors[1] must be a Tensor, got 1', () => cat([x, 1 as never])],
    [
      range,
      'cat: tensors[1] has shape [2, 2], tensors[0] [2, 3]; all sizes except that of dimension 0 must be equal',
      () => cat([x, zeros([2, 2])]),
    ],
    [
      range,
      'stack: tensors[1] has shape [3, 2], tensors[0] [2, 3]; all must be equal',
      () => stack([x, x.t()]),
    ],
    [range, 'uniform_: from must not exceed to, got 2 and 1', () => x.uniform_(2, 1)],
    [range, 'normal_: std must not be negative, got -1', () => x.normal_(0, -1)],
  ];
  it.each(cases)('%o: %s', (error, message, run) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });

  it('positions outside the tensor are errors, never reads of foreign memory', () => {
    for (const position of [2n, -3n, 2n ** 40n]) {
      expect(() => x.indexSelect(0, tensor([position]))).toThrow();
      expect(() => x.index(tensor([position]))).toThrow();
      expect(() => x.gather(0, tensor([[position]]))).toThrow();
    }
  });
});
