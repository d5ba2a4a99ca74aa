import { describe, expect, it } from 'vitest';
import { arange, memory, tensor, zeros, type ReadonlyNestedArray, type Tensor } from 'torchformer';

const list = (x: Tensor): unknown => x.toArray();
const near = (x: Tensor): number[] =>
  Array.from(x.double().data() as Float64Array, (v) => Number(v.toPrecision(6)));
const int = (values: ReadonlyNestedArray) => tensor(values, { dtype: 'int64' });
const x = tensor([
  [1, 2, 6],
  [4, 3, 5],
]);

describe('reductions', () => {
  it('prod, amax, amin and aminmax', () => {
    expect(x.prod().item()).toBe(720);
    expect(list(x.prod(0))).toEqual([4, 6, 30]);
    expect(x.prod(1, { keepdim: true }).shape).toEqual([2, 1]);
    expect(int([2, 3]).prod(null, { dtype: 'float64' }).dtype).toBe('float64');
    expect(x.amax().item()).toBe(6);
    expect(list(x.amax(1))).toEqual([6, 5]);
    expect(x.amin([0, 1], { keepdim: true }).shape).toEqual([1, 1]);
    const { min, max } = x.aminmax({ dim: 0 });
    expect([list(min), list(max)]).toEqual([
      [1, 2, 5],
      [4, 3, 6],
    ]);
    expect(x.aminmax().max.item()).toBe(6);
  });

  it('amax shares the gradient between ties, max(dim) gives it to one', () => {
    const y = tensor([2, 2], { requiresGrad: true });
    y.amax().backward();
    expect(y.grad?.toArray()).toEqual([0.5, 0.5]);
  });

  it('norms', () => {
    const y = tensor([3, -4]);
    expect(y.norm().item()).toBe(5);
    expect(y.norm(1).item()).toBe(7);
    expect(y.norm(Infinity).item()).toBe(4);
    expect(y.norm(0).item()).toBe(2);
    expect(near(x.norm(2, 1))).toEqual([6.40312, 7.07107]);
    expect(x.norm(2, [0, 1], { keepdim: true }).shape).toEqual([1, 1]);
  });

  it('var, std and their means', () => {
    const y = tensor([1, 2, 3, 4], { dtype: 'float64' });
    expect(near(y.var())).toEqual([1.66667]);
    expect(y.var(0, { correction: 0 }).item()).toBe(1.25);
    const [variance, mean] = y.varMean(0, { correction: 0 });
    expect([variance.item(), mean.item()]).toEqual([1.25, 2.5]);
    const [deviation] = y.stdMean();
    expect(near(deviation)).toEqual([1.29099]);
  });

  it('median (the lower one of two), mode and quantile', () => {
    expect(tensor([1, 3, 2, 4]).median().item()).toBe(2);
    expect(zeros([0]).median().item()).toBeNaN();
    const { values, indices } = x.median(1);
    expect([list(values), list(indices)]).toEqual([
      [2, 4],
      [1, 0],
    ]);
    expect(
      list(
        int([
          [1, 1, 2],
          [3, 4, 4],
        ]).mode().values,
      ),
    ).toEqual([1, 4]);
    expect(tensor([1, 2, 3, 4]).quantile(0.5).item()).toBe(2.5);
    expect(list(x.quantile(1, 1))).toEqual([6, 5]);
  });

  it('counts', () => {
    expect(int([0, 1, 2]).countNonzero().item()).toBe(2);
    expect(
      list(
        int([
          [0, 1],
          [2, 3],
        ]).countNonzero(0),
      ),
    ).toEqual([1, 2]);
    expect(list(int([1, 3, 1]).bincount())).toEqual([0, 2, 0, 1]);
    expect(list(int([1]).bincount({ minlength: 3 }))).toEqual([0, 1, 0]);
    expect(list(int([1, 1]).bincount({ weights: tensor([0.5, 2]) }))).toEqual([0, 2.5]);
  });

  it('leave NaN out on request', () => {
    const y = tensor([1, NaN, 3]);
    expect([y.nansum().item(), y.nanmean().item(), y.sum().item()]).toEqual([4, 2, NaN]);
  });

  it('running sums, products and extremes', () => {
    expect(list(arange(4).cumsum(0, { dtype: 'float32' }))).toEqual([0, 1, 3, 6]);
    expect(list(tensor([2, 3, 4]).cumprod(0))).toEqual([2, 6, 24]);
    const { values, indices } = tensor([1, 3, 2]).cummax(0);
    expect([list(values), list(indices)]).toEqual([
      [1, 3, 3],
      [0, 1, 1],
    ]);
    expect(list(tensor([3, 1, 2]).cummin(0).values)).toEqual([3, 1, 1]);
    const y = tensor([-2, -0.5, 0, 0.5, 3], { dtype: 'float64' });
    expect(near(y.logcumsumexp(0))).toEqual([-2, -0.298587, 0.554957, 1.221, 3.15598]);
  });
});

describe('sorting and searching', () => {
  it('sort and argsort', () => {
    const { values, indices } = tensor([3, 1, 2]).sort();
    expect([list(values), list(indices), indices.dtype]).toEqual([[1, 2, 3], [1, 2, 0], 'int64']);
    expect(list(x.sort(0, { descending: true }).values)).toEqual([
      [4, 3, 6],
      [1, 2, 5],
    ]);
    expect(list(x.argsort(1))).toEqual([
      [0, 1, 2],
      [1, 0, 2],
    ]);
    const ties = tensor([1, 0, 1, 0]);
    expect(list(ties.argsort(0, { stable: true }))).toEqual([1, 3, 0, 2]);
  });

  it('topk and kthvalue', () => {
    const { values, indices } = tensor([1, 9, 5]).topk(2);
    expect([list(values), list(indices)]).toEqual([
      [9, 5],
      [1, 2],
    ]);
    expect(list(x.topk(1, { dim: 0, largest: false }).values)).toEqual([[1, 2, 5]]);
    expect(tensor([1, 9, 5]).kthvalue(2).values.item()).toBe(5);
  });

  it('unique', () => {
    const y = int([3, 1, 3, 3]);
    expect(list(y.unique())).toEqual([1, 3]);
    const { values, inverse, counts } = y.uniqueParts();
    expect([list(values), list(inverse), list(counts)]).toEqual([
      [1, 3],
      [1, 0, 1, 1],
      [1, 3],
    ]);
    expect(list(y.uniqueConsecutive())).toEqual([3, 1, 3]);
    expect(
      list(
        int([
          [1, 2],
          [1, 2],
          [0, 5],
        ]).unique({ dim: 0 }),
      ),
    ).toEqual([
      [0, 5],
      [1, 2],
    ]);
  });

  it('searchsorted and bucketize', () => {
    const sorted = tensor([1, 2, 2, 3]);
    expect(list(sorted.searchsorted(tensor([2, 5])))).toEqual([1, 4]);
    expect(list(sorted.searchsorted(tensor([2]), { right: true }))).toEqual([3]);
    expect(list(tensor([[0.5, 2.5]]).bucketize(tensor([1, 2])))).toEqual([[0, 2]]);
  });

  it('nonzero', () => {
    const y = int([
      [0, 7],
      [8, 0],
    ]);
    expect(list(y.nonzero())).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(list(y.index(...y.nonzeroTuple()))).toEqual([7, 8]);
  });

  it('leave no hidden tensors behind', () => {
    const before = memory().tensors;
    const made = [x.unique(), x.argsort(), x.uniqueConsecutive()];
    expect(memory().tensors).toBe(before + 3);
    for (const tensor of made) tensor.dispose();
  });
});

describe('faulty arguments', () => {
  const ints = int([1, 2]);
  const cases: [ErrorConstructor, string, () => unknown][] = [
    [RangeError, 'prod: dim must be from -2 to 1', () => x.prod(2)],
    [TypeError, 'prod: keepdim requires dim', () => x.prod(null, { keepdim: true })],
    [RangeError, 'sum: dim must name each dimension once, got [0, -2]', () => x.sum([0, -2])],
    [RangeError, 'amax: a tensor without elements has no amax', () => zeros([0]).amax()],
    [RangeError, 'aminmax: dim must be from -2 to 1', () => x.aminmax({ dim: 4 })],
    [TypeError, 'norm: p must be a number', () => x.norm('fro' as never)],
    [TypeError, 'norm: needs a floating-point tensor, got int64', () => ints.norm()],
    [TypeError, 'varMean: needs a floating-point tensor, got int64', () => ints.varMean()],
    [RangeError, 'mode: a tensor without elements has no mode', () => zeros([0]).mode()],
    [RangeError, 'quantile: q must be from 0 to 1, got 2', () => x.quantile(2)],
    [TypeError, 'quantile: needs a floating-point tensor, got int64', () => ints.quantile(0.5)],
    [RangeError, 'bincount: needs a vector [N], got [2, 3]', () => x.bincount()],
    [TypeError, 'cumprod: unknown option "dim"; valid options: dtype', cumprodWithDim],
    [TypeError, 'logcumsumexp: needs a floating-point tensor', () => ints.logcumsumexp(0)],
    [TypeError, 'sort: descending must be true or false, got 1', sortByNumber],
    [RangeError, 'topk: k must be at most 3, the size of dimension -1, got 4', () => x.topk(4)],
    [RangeError, 'kthvalue: k must be an integer at least 1, got 0', () => x.kthvalue(0)],
    [RangeError, 'kthvalue: k must be at most 2', () => x.kthvalue(3, 0)],
    [RangeError, 'unique: dim must be from -2 to 1', () => x.unique({ dim: 2 })],
    [
      RangeError,
      'searchsorted: values [3, 1] must match the tensor [2, 3] in all dimensions except the last',
      () => x.searchsorted(zeros([3, 1])),
    ],
    [RangeError, 'bucketize: boundaries must be a vector [N], got [2, 3]', () => x.bucketize(x)],
  ];
  function cumprodWithDim() {
    return x.cumprod(0, { dim: 1 } as never);
  }
  function sortByNumber() {
    return x.sort(0, { descending: 1 as never });
  }
  it.each(cases)('%o: %s', (error, message, run) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });
});
