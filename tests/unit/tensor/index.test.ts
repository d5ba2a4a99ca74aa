import { describe, expect, it } from 'vitest';
import { arange, memory, tensor, tidy, zeros, type Index, type Tensor } from 'torchformer';

/** [2, 3, 4]: element [a, b, c] is 12a + 4b + c. */
const x = arange(24).reshape(2, 3, 4);
const pick = (...indices: Index[]) => x.index(...indices).toArray();
const shapeOf = (...indices: Index[]) => x.index(...indices).shape;

describe("index, as Python's x[…]", () => {
  it('integers take a dimension away, slices keep it', () => {
    expect(pick(1, 2, 3)).toBe(23);
    expect(pick(0, -1)).toEqual([8, 9, 10, 11]);
    expect(pick(0, '1:', '::2')).toEqual([
      [4, 6],
      [8, 10],
    ]);
    expect(pick(0, 0, ':-1')).toEqual([0, 1, 2]);
    expect(pick(0, 0, '-2:')).toEqual([2, 3]);
    expect(pick(0, 0, '1:3')).toEqual([1, 2]);
    expect(pick(0, 0, '3:1')).toEqual([]);
    expect(pick(0, 0, ':99')).toEqual([0, 1, 2, 3]);
    expect(pick(0, 0, { start: 1, step: 2 })).toEqual([1, 3]);
    expect(pick(0, 0, { end: -2 })).toEqual([0, 1]);
    expect(pick(tensor(1n), 0, 0)).toBe(12);
  });

  it("'...' stands for the dimensions left out, null for a new one", () => {
    expect(pick('...', 0)).toEqual([
      [0, 4, 8],
      [12, 16, 20],
    ]);
    expect(shapeOf('...')).toEqual([2, 3, 4]);
    expect(shapeOf(null)).toEqual([1, 2, 3, 4]);
    expect(shapeOf('...', null)).toEqual([2, 3, 4, 1]);
    expect(shapeOf('...', null, '1:3')).toEqual([2, 3, 1, 2]);
    expect(shapeOf(0, null, ':', null, 1)).toEqual([1, 3, 1]);
  });

  it('masks pick where they are true and stand for as many dimensions as they have', () => {
    expect(pick(x.gt(20))).toEqual([21, 22, 23]);
    expect(pick([true, false], 0, 0)).toEqual([0]);
    // [2, 3] mask, then a slice of the last dimension.
    expect(pick(x.select(2, 0).gt(10), '1:3')).toEqual([
      [13, 14],
      [17, 18],
      [21, 22],
    ]);
    expect(shapeOf(tensor(true))).toEqual([1, 2, 3, 4]);
    expect(shapeOf(tensor(false))).toEqual([0, 2, 3, 4]);
  });

  // Values and shapes from PyTorch.
  it('positions are broadcast against each other; apart, their dimension comes first', () => {
    expect(pick([1, 0], 0, 0)).toEqual([12, 0]);
    expect(pick([0, 1], ':', 0)).toEqual([
      [0, 4, 8],
      [12, 16, 20],
    ]);
    expect(pick(0, ':', [0, 1])).toEqual([
      [0, 1],
      [4, 5],
      [8, 9],
    ]);
    expect(pick(tensor([[0n], [1n]]), tensor([0n, 2n]), 1)).toEqual([
      [1, 9],
      [13, 21],
    ]);
    expect(shapeOf([0], ':', [1])).toEqual([1, 3]);
    expect(shapeOf(':', [0, 2], null)).toEqual([2, 2, 1, 4]);
    expect(pick([-1], -1, -1)).toEqual([23]);
    expect(shapeOf([])).toEqual([0, 3, 4]);
  });

  it('shares memory unless masks or positions copy, and passes gradients on', () => {
    const y = zeros([2, 2]);
    y.index(0, '1:').fill_(5);
    y.index([0]).fill_(7);
    expect(y.toArray()).toEqual([
      [0, 5],
      [0, 0],
    ]);
    const z = zeros([3], { requiresGrad: true });
    z.index([0, 0, 2]).sum().add(z.index('1:').sum()).backward();
    expect(z.grad?.toArray()).toEqual([2, 1, 2]);
    const same = y.index(':');
    same.dispose();
    expect(y.isDisposed).toBe(false);
  });

  it('leaves no tensor behind but its result', () => {
    const before = memory().tensors;
    const result = x.index(null, [0], 1, '1:');
    expect(memory().tensors).toBe(before + 1);
    result.dispose();
    const y = zeros([2, 3]);
    y.indexPut_([0, [0, 1]], 1);
    y.dispose();
    expect(memory().tensors).toBe(before);
  });
});

describe("indexPut_, as Python's x[…] = value", () => {
  const after = (change: (y: Tensor) => Tensor) => tidy(() => change(zeros([2, 3])).toArray());

  it('writes numbers and tensors to views', () => {
    expect(after((y) => y.indexPut_([0], 1))).toEqual([
      [1, 1, 1],
      [0, 0, 0],
    ]);
    expect(after((y) => y.indexPut_([':', '1:'], tensor([[1n], [2n]])))).toEqual([
      [0, 1, 1],
      [0, 2, 2],
    ]);
    expect(after((y) => y.indexPut_([1], tensor([[1, 2, 3]])))).toEqual([
      [0, 0, 0],
      [1, 2, 3],
    ]);
    expect(after((y) => y.indexPut_([1, 1], tensor(4)))).toEqual([
      [0, 0, 0],
      [0, 4, 0],
    ]);
  });

  it('writes to masks and positions', () => {
    expect(after((y) => y.indexPut_([y.eq(0)], 2.5))).toEqual([
      [2.5, 2.5, 2.5],
      [2.5, 2.5, 2.5],
    ]);
    expect(
      after((y) =>
        y.indexPut_(
          [
            [0, 1],
            [2, 0],
          ],
          tensor([1, 2]),
        ),
      ),
    ).toEqual([
      [0, 0, 1],
      [2, 0, 0],
    ]);
    expect(after((y) => y.indexPut_([1, [0, 2]], 1))).toEqual([
      [0, 0, 0],
      [1, 0, 1],
    ]);
  });

  it('accumulates on request, repeated positions too', () => {
    expect(after((y) => y.indexPut_([0, [1, 1]], 1, { accumulate: true }))).toEqual([
      [0, 2, 0],
      [0, 0, 0],
    ]);
    expect(after((y) => y.fill_(1).indexPut_([0], 1, { accumulate: true }))).toEqual([
      [2, 2, 2],
      [1, 1, 1],
    ]);
  });

  it('returns the tensor itself', () => {
    const y = zeros([2]);
    expect(y.indexPut_([0], 1)).toBe(y);
  });
});

describe('faulty indices', () => {
  const y = zeros([2, 3]);
  const cases: [ErrorConstructor, string, () => unknown][] = [
    [TypeError, 'index: pass at least one index', () => y.index()],
    [RangeError, 'index: 3 indices for a tensor of shape [2, 3]', () => y.index(0, 0, 0)],
    [RangeError, 'index: 3 indices for a tensor', () => y.index(y.eq(0), 0)],
    [
      RangeError,
      'index: indices[1] is 3, which is out of range for a dimension of size 3',
      () => y.index(0, 3),
    ],
    [RangeError, 'index: indices[0] is -3, which is out of range', () => y.index(-3)],
    [RangeError, 'index: indices[0] must be an integer', () => y.index(0.5)],
    [RangeError, 'index: indices[0][1] must be an integer', () => y.index([0, 0.5])],
    [TypeError, 'index: indices[0][1] must be an integer', () => y.index([0, , 1] as never)],
    [TypeError, "index: '...' may occur only once", () => y.index('...', '...')],
    [
      TypeError,
      "index: indices[0] must be a slice like '1:3', ':-1' or '::2', or '...', got the string \"1,2\"",
      () => y.index('1,2' as never),
    ],
    [RangeError, 'index: indices[0].step must be an integer at least 1', () => y.index('::-1')],
    [
      TypeError,
      'index: indices[0] has an unknown key "stop"; valid keys: end, start, step',
      () => y.index({ stop: 1 } as never),
    ],
    [
      TypeError,
      "index: indices[0] must be an integer, a slice like '1:3', '...', null, a Tensor or an array, got true",
      () => y.index(true as never),
    ],
    [TypeError, 'index: indices[0] must be int64 or bool, got float32', () => y.index(y)],
    [
      RangeError,
      'index: the mask indices[0] of shape [3] does not match dimensions of shape [2]',
      () => y.index([true, true, false]),
    ],
    [
      RangeError,
      'index: positions [2] and positions [3] cannot be broadcast',
      () => y.index([0, 1], [0, 1, 2]),
    ],
    [TypeError, 'indexPut_: indices must be an array, got 0', () => y.indexPut_(0 as never, 1)],
    [
      TypeError,
      'indexPut_: value must be a Tensor or a number, got null',
      () => y.indexPut_([0], null as never),
    ],
    [
      RangeError,
      'indexPut_: value [2] cannot be broadcast to the shape [3]',
      () => y.indexPut_([0], tensor([1, 2])),
    ],
    [
      TypeError,
      "indexPut_: value must have the tensor's dtype float32, got int64",
      () => y.indexPut_([[0]], tensor([1n])),
    ],
  ];
  it.each(cases)('%o: %s', (error, message, run) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });

  it('positions outside are errors, never reads or writes of foreign memory', () => {
    for (const position of [2, -3, 2 ** 40]) {
      expect(() => y.index([position])).toThrow(/out of bounds|out of range/);
      expect(() => y.indexPut_([[position]], 1)).toThrow(/out of bounds|out of range/);
    }
    expect(y.toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });
});

describe('iteration', () => {
  it('goes over the first dimension', () => {
    expect(Array.from(x, (part) => part.shape)).toEqual([
      [3, 4],
      [3, 4],
    ]);
    const [first, second] = tensor([5, 6]);
    expect([first?.item(), second?.item()]).toEqual([5, 6]);
    let sum = 0;
    for (const element of tensor([1, 2, 3])) sum += element.item();
    expect(sum).toBe(6);
    expect([...zeros([0, 2])]).toEqual([]);
  });

  it('of a single number is refused', () => {
    expect(() => [...tensor(1)]).toThrow('a 0-dim tensor cannot be iterated');
  });
});
