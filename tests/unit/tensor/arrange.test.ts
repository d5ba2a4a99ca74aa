import { describe, expect, it } from 'vitest';
import {
  arange,
  broadcastTensors,
  hstack,
  meshgrid,
  ones,
  tensor,
  vstack,
  zeros,
  type ReadonlyNestedArray,
  type Tensor,
} from 'torchformer';

const list = (x: Tensor): unknown => x.toArray();
const int = (values: ReadonlyNestedArray) => tensor(values, { dtype: 'int64' });
const x = arange(6).reshape(2, 3);

describe('moving, repeating and turning dimensions', () => {
  it('movedim, swapaxes, unflatten and the shapes of others', () => {
    const y = zeros([2, 3, 4]);
    expect(y.movedim(0, -1).shape).toEqual([3, 4, 2]);
    expect(y.movedim([0, 1], [1, 2]).shape).toEqual([4, 2, 3]);
    expect(y.swapaxes(0, 2).shape).toEqual([4, 3, 2]);
    expect(y.unflatten(2, [2, -1]).shape).toEqual([2, 3, 2, 2]);
    expect(list(x.t().ravel())).toEqual([0, 3, 1, 4, 2, 5]);
    expect(x.reshapeAs(zeros([3, 2])).shape).toEqual([3, 2]);
    expect(x.viewAs(zeros([6])).shape).toEqual([6]);
    expect(tensor([1, 2, 3]).expandAs(x).shape).toEqual([2, 3]);
    expect(tensor([1]).broadcastTo(2, 2).shape).toEqual([2, 2]);
  });

  it('repeat, tile and repeatInterleave', () => {
    const y = tensor([1, 2]);
    expect(list(y.repeat(2))).toEqual([1, 2, 1, 2]);
    expect(list(y.repeat(2, 1))).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect(zeros([2, 3]).tile(2).shape).toEqual([2, 6]);
    expect(list(y.repeatInterleave(2))).toEqual([1, 1, 2, 2]);
    expect(list(y.repeatInterleave(int([0, 3]), 0))).toEqual([2, 2, 2]);
    expect(x.repeatInterleave(2, 1).shape).toEqual([2, 6]);
  });

  it('flip, roll and rot90', () => {
    expect(list(x.flip(1))).toEqual([
      [2, 1, 0],
      [5, 4, 3],
    ]);
    expect(list(x.flip([0, 1]))).toEqual([
      [5, 4, 3],
      [2, 1, 0],
    ]);
    expect(list(arange(6).roll(2))).toEqual([4, 5, 0, 1, 2, 3]);
    expect(list(x.roll([1, 1], [0, 1]))).toEqual([
      [5, 3, 4],
      [2, 0, 1],
    ]);
    expect(list(arange(4).reshape(2, 2).rot90())).toEqual([
      [1, 3],
      [0, 2],
    ]);
  });

  it('triangles and diagonals', () => {
    const y = ones([3, 3]);
    expect(list(y.tril())).toEqual([
      [1, 0, 0],
      [1, 1, 0],
      [1, 1, 1],
    ]);
    expect(list(y.triu(1))).toEqual([
      [0, 1, 1],
      [0, 0, 1],
      [0, 0, 0],
    ]);
    expect(list(x.diagonal())).toEqual([0, 4]);
    expect(list(x.diagonal({ offset: 1 }))).toEqual([1, 5]);
    expect(list(tensor([1, 2]).diagEmbed())).toEqual([
      [1, 0],
      [0, 2],
    ]);
    expect(x.trace().item()).toBe(4);
    expect(zeros([5, 2, 2]).diagonal({ dim1: -2, dim2: -1 }).shape).toEqual([5, 2]);
  });

  it('unbind, unfold and split by sizes', () => {
    expect(x.unbind(1).map(list)).toEqual([
      [0, 3],
      [1, 4],
      [2, 5],
    ]);
    expect(list(arange(5).unfold(0, 3, 2))).toEqual([
      [0, 1, 2],
      [2, 3, 4],
    ]);
    expect(
      arange(5)
        .split([1, 4])
        .map((part) => part.shape),
    ).toEqual([[1], [4]]);
  });

  it('oneHot', () => {
    expect(list(int([1, 0]).oneHot())).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(int([[1, 0]]).oneHot(5).shape).toEqual([1, 2, 5]);
  });
});

describe('putting tensors together', () => {
  it('hstack, vstack, meshgrid and broadcastTensors', () => {
    expect(list(hstack([arange(2), arange(1)]))).toEqual([0, 1, 0]);
    expect(hstack([x, x]).shape).toEqual([2, 6]);
    expect(list(vstack([arange(2), arange(2)]))).toEqual([
      [0, 1],
      [0, 1],
    ]);
    const [rows, columns] = meshgrid([arange(2), arange(3)]) as [Tensor, Tensor];
    expect([list(rows), list(columns)]).toEqual([
      [
        [0, 0, 0],
        [1, 1, 1],
      ],
      [
        [0, 1, 2],
        [0, 1, 2],
      ],
    ]);
    expect(meshgrid([arange(2), arange(3)], { indexing: 'xy' })[0]?.shape).toEqual([3, 2]);
    const shapes = broadcastTensors(zeros([2, 1]), zeros([3])).map((part) => part.shape);
    expect(shapes).toEqual([
      [2, 3],
      [2, 3],
    ]);
  });
});

describe('writing to positions', () => {
  const zero = zeros([2, 3]);

  it('scatter and scatterAdd', () => {
    const index = int([[0, 2]]);
    expect(list(zero.scatter(1, index, tensor([[5, 6]])))).toEqual([
      [5, 0, 6],
      [0, 0, 0],
    ]);
    expect(list(zero.scatter(0, int([[1, 0, 1]]), 1))).toEqual([
      [0, 1, 0],
      [1, 0, 1],
    ]);
    const twice = int([[1, 1]]);
    expect(list(zero.scatterAdd(1, twice, tensor([[5, 6]])))).toEqual([
      [0, 11, 0],
      [0, 0, 0],
    ]);
    const most = zero.scatterReduce(1, twice, tensor([[5, 6]]), 'amax');
    expect(list(most)).toEqual([
      [0, 6, 0],
      [0, 0, 0],
    ]);
    const alone = ones([1, 2]).scatterReduce(1, int([[1, 1]]), tensor([[5, 6]]), 'prod', {
      includeSelf: false,
    });
    expect(list(alone)).toEqual([[1, 30]]);
    expect(list(zero)).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });

  it('indexAdd, indexFill and indexCopy', () => {
    const rows = tensor([[1, 2, 3]]);
    expect(list(zero.indexAdd(0, int([1]), rows, { alpha: 2 }))).toEqual([
      [0, 0, 0],
      [2, 4, 6],
    ]);
    expect(list(zero.indexFill(1, int([0, 2]), 7))).toEqual([
      [7, 0, 7],
      [7, 0, 7],
    ]);
    expect(list(zero.indexCopy(0, int([0]), rows))).toEqual([
      [1, 2, 3],
      [0, 0, 0],
    ]);
  });

  it('in place', () => {
    const y = zeros([2]);
    expect(y.scatter_(0, int([0]), 1)).toBe(y);
    expect(y.scatterAdd_(0, int([0]), tensor([1]))).toBe(y);
    expect(y.indexAdd_(0, int([1]), tensor([5]))).toBe(y);
    expect(y.indexFill_(0, int([0]), 8)).toBe(y);
    expect(list(y)).toEqual([8, 5]);
    expect(list(y.indexCopy_(0, int([0]), tensor([3])))).toEqual([3, 5]);
  });

  it('take and takeAlongDim', () => {
    expect(list(x.take(int([5, 0])))).toEqual([5, 0]);
    expect(list(x.takeAlongDim(x.argmax(1, { keepdim: true }), 1))).toEqual([[2], [5]]);
  });

  it('gradients come back to the source', () => {
    const source = ones([2], { requiresGrad: true });
    zeros([3])
      .scatterAdd(0, int([1, 1]), source)
      .mul(tensor([1, 10, 100]))
      .sum()
      .backward();
    expect(source.grad?.toArray()).toEqual([10, 10]);
  });

  it('positions outside are errors, never writes to foreign memory', () => {
    const y = zeros([2]);
    for (const position of [2, -3, 2 ** 40]) {
      expect(() => y.scatter_(0, int([position]), 1)).toThrow();
      expect(() => y.scatterAdd_(0, int([position]), tensor([1]))).toThrow();
      expect(() => y.indexAdd_(0, int([position]), tensor([1]))).toThrow();
      expect(() => y.indexFill_(0, int([position]), 1)).toThrow();
      expect(() => y.indexCopy_(0, int([position]), tensor([1]))).toThrow();
      expect(() => y.take(int([position]))).toThrow();
    }
    expect(list(y)).toEqual([0, 0]);
  });
});

describe('faulty arguments', () => {
  const cases: [ErrorConstructor, string, () => unknown][] = [
    [RangeError, 'movedim: source[0] must be from -2 to 1', () => x.movedim(2, 0)],
    [RangeError, 'movedim: needs as many destinations as sources', () => x.movedim([0, 1], 0)],
    [RangeError, 'unflatten: dimension 1 of size 3 cannot', () => x.unflatten(1, [2, 2])],
    [RangeError, 'repeat: needs at least one count for each of the 2', () => x.repeat(2)],
    [RangeError, 'repeatInterleave: repeats must be an integer', () => x.repeatInterleave(-1)],
    [
      RangeError,
      'repeatInterleave: repeats must be 3 non-negative int64 counts, got a Tensor [2]',
      () => x.repeatInterleave(int([1, 2]), 1),
    ],
    [RangeError, 'flip: dims must name each dimension once, got [0, 0]', () => x.flip(0, 0)],
    [RangeError, 'roll: needs as many shifts as dims', () => x.roll([1, 2], 0)],
    [RangeError, 'rot90: dims must', () => x.rot90(1, [0] as never)],
    [RangeError, 'tril: needs matrices […, R, C], got [3]', () => arange(3).tril()],
    [
      RangeError,
      'diagonal: dim1 and dim2 must differ, got 0 and 0',
      () => x.diagonal({ dim1: 0, dim2: 0 }),
    ],
    [RangeError, 'trace: needs a matrix [R, C], got [3]', () => arange(3).trace()],
    [RangeError, 'unbind: a 0-dim tensor has no dimension', () => tensor(1).unbind()],
    [RangeError, 'unfold: size 4 is larger than dimension 1', () => x.unfold(1, 4, 1)],
    [
      RangeError,
      'split: sizes [1, 1] must add up to the size of dimension 1, which is 3',
      () => x.split([1, 1], 1),
    ],
    [TypeError, 'oneHot: needs an int64 tensor, got float32', () => zeros([1]).oneHot()],
    [
      RangeError,
      'scatter: index [3, 1] must have as many dimensions as the tensor [2, 3] and must not be larger',
      () => x.scatter(1, zeros([3, 1], { dtype: 'int64' }), 1),
    ],
    [
      RangeError,
      'scatterAdd: source [1] must be at least as large as index [2]',
      () => arange(3).scatterAdd(0, int([0, 1]), int([1])),
    ],
    [
      TypeError,
      "scatter: source must have the tensor's dtype float32, got int64",
      () => zeros([2]).scatter(0, int([0]), int([1])),
    ],
    [
      TypeError,
      `scatterReduce: reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin', got the string "max"`,
      () => x.scatterReduce(0, x, x, 'max' as never),
    ],
    [
      RangeError,
      'indexAdd: source must be [1, 3]',
      () => zeros([2, 3]).indexAdd(0, int([0]), zeros([2, 3])),
    ],
    [
      TypeError,
      'take: index must be an int64 tensor, got float32; convert it with long()',
      () => x.take(zeros([1])),
    ],
    [
      RangeError,
      'meshgrid: tensors[1] must be a vector [N], got [2, 3]',
      () => meshgrid([arange(2), x]),
    ],
    [
      RangeError,
      'broadcastTensors: tensors[0] [2] and tensors[1] [3] cannot be broadcast',
      () => broadcastTensors(zeros([2]), zeros([3])),
    ],
    [RangeError, 'hstack: tensors[1] has shape [3, 2]', () => hstack([x, x.t()])],
    // Arrays with holes, which their methods pass over.
    [TypeError, 'hstack: tensors[0] must be a Tensor', () => hstack(new Array(1) as never)],
    [TypeError, 'hstack: tensors[1] must be a Tensor', () => hstack([x, , x] as never)],
    [TypeError, 'shape[1] must be an integer', () => x.reshape([2, , 3] as never)],
  ];
  it.each(cases)('%o: %s', (error, message, run) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });
});
