import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  callAsync,
  enableGrad,
  grad,
  isGradEnabled,
  noGrad,
  ones,
  tensor,
  TorchError,
  zeros,
  type Tensor,
} from 'torchformer';

const leaf = (data: Parameters<typeof tensor>[0]): Tensor =>
  tensor(data, { dtype: 'float64', requiresGrad: true });
const gradOf = (x: Tensor): unknown => x.grad?.toArray() ?? null;

describe('backward', () => {
  it('of a sum of squares is twice the input', () => {
    const x = leaf([1, -2, 3]);
    x.mul(x).sum().backward();
    expect(gradOf(x)).toEqual([2, -4, 6]);
  });

  it('follows the chain rule through several operations', () => {
    // y = 1 / (a b + 3), dy/da = -b / (a b + 3)², at a = 1, b = 2: -2 / 25.
    const [a, b] = [leaf(1), leaf(2)];
    a.mul(b).add(3).reciprocal().backward();
    expect(a.grad?.item()).toBeCloseTo(-2 / 25, 15);
    expect(b.grad?.item()).toBeCloseTo(-1 / 25, 15);
  });

  it('of a matrix product is the product with the other, transposed', () => {
    const a = leaf([
      [1, 2],
      [3, 4],
    ]);
    const b = leaf([
      [5, 6],
      [7, 8],
    ]);
    a.matmul(b).sum().backward();
    expect(gradOf(a)).toEqual([
      [11, 15],
      [11, 15],
    ]);
    expect(gradOf(b)).toEqual([
      [4, 4],
      [6, 6],
    ]);
  });

  it('of softmax: p (1 - p) on the diagonal, -p q beside it', () => {
    const x = leaf([0, Math.log(3)]);
    x.softmax(0).select(0, 0).backward();
    const [first, second] = gradOf(x) as [number, number];
    expect(first).toBeCloseTo(0.25 * 0.75, 15);
    expect(second).toBeCloseTo(-0.25 * 0.75, 15);
  });

  it('sums over dimensions that were broadcast', () => {
    const [row, column] = [leaf([1, 2, 3]), leaf([[10], [20]])];
    row.mul(column).sum().backward();
    expect(gradOf(row)).toEqual([30, 30, 30]);
    expect(gradOf(column)).toEqual([[6], [6]]);
  });

  it('reaches through views, indexing and masks', () => {
    const x = leaf([1, 2, 3, 4]);
    const picked = x.reshape(2, 2).t().select(0, 1);
    picked
      .maskedFill(tensor([true, false]), 0)
      .mul(tensor([5, 7]))
      .sum()
      .backward();
    expect(gradOf(x)).toEqual([0, 0, 0, 7]);
    const y = leaf([1, 2, 3]);
    y.index(tensor([2n, 2n, 0n]))
      .sum()
      .backward();
    expect(gradOf(y)).toEqual([1, 0, 2]);
  });

  it('takes an upstream gradient for several elements', () => {
    const x = leaf([1, 2]);
    x.mul(3).backward({ gradient: tensor([1, 10], { dtype: 'float64' }) });
    expect(gradOf(x)).toEqual([3, 30]);
  });

  it('adds to the gradients that are there', () => {
    const x = leaf([1]);
    x.mul(2).sum().backward();
    x.mul(5).sum().backward();
    expect(gradOf(x)).toEqual([7]);
    x.grad = null;
    expect(x.grad).toBeNull();
    x.mul(5).sum().backward();
    expect(gradOf(x)).toEqual([5]);
  });

  it('with `inputs` gives gradients to these only', () => {
    const [a, b] = [leaf(2), leaf(3)];
    a.mul(b).backward({ inputs: [a] });
    expect([gradOf(a), gradOf(b)]).toEqual([3, null]);
  });

  it('keeps the graph on request, and says so when it is gone', () => {
    const x = leaf(3);
    const y = x.mul(x);
    y.backward({ retainGraph: true });
    y.backward();
    expect(gradOf(x)).toBe(12);
    expect(() => y.backward()).toThrow(TorchError);
    expect(() => y.backward()).toThrow(/second time/);
  });

  it('does not need the tensors in between: they may be disposed of', () => {
    const x = leaf([2]);
    const square = x.mul(x);
    const cube = square.mul(x);
    square.dispose();
    cube.sum().backward();
    expect(gradOf(x)).toEqual([12]);
  });

  it('leaves detached tensors alone', () => {
    const x = leaf([2]);
    const y = x.detach().mul(x);
    y.sum().backward();
    expect(gradOf(x)).toEqual([2]);
    expect(x.detach().requiresGrad).toBe(false);
  });

  it('off the event loop gives the same and lets the loop turn', async () => {
    const x = leaf([1, 2]);
    let turned = false;
    const turn = setImmediate().then(() => (turned = true));
    await x.mul(x).sum().backwardAsync();
    expect(turned).toBe(true);
    await turn;
    expect(gradOf(x)).toEqual([2, 4]);
    await expect(x.mul(x).backwardAsync()).rejects.toThrow(RangeError);
    const y = x.mul(x).sum();
    await y.backwardAsync();
    await expect(y.backwardAsync()).rejects.toThrow(TorchError);
  });
});

describe('backward refuses', () => {
  it('a tensor with several elements and no upstream gradient', () => {
    expect(() => leaf([1, 2]).mul(2).backward()).toThrow(
      'backward: gradient is required because the tensor has shape [2]',
    );
  });

  it('an upstream gradient of another shape', () => {
    const gradient = zeros([3], { dtype: 'float64' });
    expect(() => leaf([1, 2]).mul(2).backward({ gradient })).toThrow(
      'backward: gradient must have the shape of the tensor, [2], got [3]',
    );
  });

  it('a tensor without a graph', () => {
    expect(() => tensor(1).backward()).toThrow(TypeError);
    expect(() => tensor(1).backward()).toThrow(
      /does not depend on anything that requires gradients/,
    );
  });

  it('unknown options and wrong kinds', () => {
    expect(() => leaf(1).backward({ keepGraph: true } as never)).toThrow(
      /unknown option "keepGraph"/,
    );
    expect(() => leaf(1).backward({ retainGraph: 1 as never })).toThrow(
      /retainGraph must be true or/,
    );
    expect(() => leaf(1).backward({ gradient: 1 as never })).toThrow(/gradient must be a Tensor/);
    expect(() => leaf(1).backward({ inputs: [1 as never] })).toThrow(
      /inputs\[0\] must be a Tensor/,
    );
  });

  it('values overwritten after they were saved for it', () => {
    const x = leaf([1, 2]);
    const y = x.exp();
    const sum = y.sum();
    y.mul_(2);
    expect(() => sum.backward()).toThrow(TorchError);
    expect(() => sum.backward()).toThrow(/modified by an inplace operation/);
  });
});

describe('grad()', () => {
  it('gives the gradients without touching .grad', () => {
    const [x, y] = [leaf([2, 3]), leaf([5, 7])];
    const [gx, gy] = grad(x.mul(y).sum(), [x, y]) as [Tensor, Tensor];
    expect([gx.toArray(), gy.toArray()]).toEqual([
      [5, 7],
      [2, 3],
    ]);
    expect([x.grad, y.grad]).toEqual([null, null]);
  });

  it('of gradients: the third power, twice', () => {
    const x = leaf(4);
    const [first] = grad(x.pow(3), x, { createGraph: true }) as [Tensor];
    expect(first.item()).toBe(48);
    const [second] = grad(first, x) as [Tensor];
    expect(second.item()).toBe(24);
  });

  it('with respect to a tensor in the middle', () => {
    const x = leaf(2);
    const middle = x.mul(3);
    const [g] = grad(middle.mul(middle), middle) as [Tensor];
    expect(g.item()).toBe(12);
  });

  it('weighs outputs by gradOutputs and adds them up', () => {
    const x = leaf([1, 2]);
    const weights = [tensor([1, 0], { dtype: 'float64' }), null];
    const [g] = grad([x.mul(2), x.sum()], x, { gradOutputs: weights }) as [Tensor];
    expect(g.toArray()).toEqual([3, 1]);
  });

  it('gives null for unused inputs only when that is allowed', () => {
    const [x, unused] = [leaf(2), leaf(3)];
    expect(grad(x.mul(x), [x, unused], { allowUnused: true })[1]).toBeNull();
    expect(() => grad(x.mul(x), [x, unused])).toThrow(TorchError);
    expect(() => grad(x.mul(x), tensor(1))).toThrow(/inputs\[0\] does not require gradients/);
    expect(() => grad(x.mul(x), x, { gradOutputs: [] })).toThrow(/one entry per output, 1/);
    expect(() => grad(tensor(1), x)).toThrow(/outputs\[0\] does not depend on anything/);
    expect(() => grad(1 as never, x)).toThrow(/outputs must be an array of Tensors/);
  });
});

describe('noGrad and enableGrad', () => {
  it('switch recording off and on again', () => {
    const x = leaf([1]);
    expect(isGradEnabled()).toBe(true);
    const y = noGrad(() => {
      expect(isGradEnabled()).toBe(false);
      expect(enableGrad(() => x.mul(2).requiresGrad)).toBe(true);
      return x.mul(2);
    });
    expect([y.requiresGrad, y.isLeaf, y.gradFn, isGradEnabled()]).toEqual([
      false,
      true,
      null,
      true,
    ]);
    expect(x.mul(2).requiresGrad).toBe(true);
  });

  it('restore the mode when fn throws', () => {
    expect(() =>
      noGrad(() => {
        throw new Error('inside');
      }),
    ).toThrow('inside');
    expect(isGradEnabled()).toBe(true);
  });

  it('refuse an async function before it runs', () => {
    let ran = false;
    const run = (): unknown =>
      noGrad(async () => {
        ran = true;
      });
    expect(run).toThrow(TypeError);
    expect(run).toThrow(/noGrad: fn is async/);
    expect([ran, isGradEnabled()]).toEqual([false, true]);
  });

  it('refuse a function that returns a Promise, whatever becomes of it', () => {
    expect(() => noGrad(() => Promise.reject(new Error('unheard')))).toThrow(/returned a Promise/);
    expect(() => enableGrad(() => Promise.resolve())).toThrow(/enableGrad: fn returned a Promise/);
    expect(() => noGrad(3 as never)).toThrow(/noGrad: fn must be a function, got 3/);
    expect(isGradEnabled()).toBe(true);
  });

  it('go along with native jobs that are started inside', async () => {
    const x = leaf([1]);
    const [without] = noGrad(() => [callAsync('aten::mul.Scalar', x, 2)]) as [Promise<Tensor>];
    const withGrad = callAsync('aten::mul.Scalar', x, 2) as Promise<Tensor>;
    expect([(await without).requiresGrad, (await withGrad).requiresGrad]).toEqual([false, true]);
  });
});

describe('leaves', () => {
  it('are tensors that no recorded operation has computed', () => {
    const x = leaf([1]);
    const y = x.mul(2);
    expect([x.isLeaf, x.gradFn]).toEqual([true, null]);
    expect([y.isLeaf, y.requiresGrad]).toEqual([false, true]);
    expect(y.gradFn).toMatch(/^MulBackward/);
    expect([tensor([1]).isLeaf, tensor([1]).requiresGrad]).toEqual([true, false]);
  });

  it('switch requiresGrad; computed tensors cannot switch it off', () => {
    const x = zeros([1]);
    expect(x.requiresGrad_()).toBe(x);
    expect(x.requiresGrad).toBe(true);
    x.requiresGrad = false;
    expect(x.requiresGrad).toBe(false);
    expect(() => (leaf([1]).mul(2).requiresGrad = false)).toThrow(/only a leaf can stop/);
    expect(() => tensor([1n]).requiresGrad_()).toThrow(/this one is int64; convert it/);
    expect(() => (x.requiresGrad = 1 as never)).toThrow(TypeError);
  });

  it('cannot be changed in place while gradients are recorded', () => {
    const x = leaf([1]);
    expect(() => x.add_(1)).toThrow(TorchError);
    noGrad(() => x.add_(1));
    expect(x.toArray()).toEqual([2]);
  });

  it('give the same object for the same gradient', () => {
    const x = leaf([1]);
    x.mul(2).sum().backward();
    expect(x.grad).toBe(x.grad);
    x.grad?.mul_(10);
    expect(gradOf(x)).toEqual([20]);
    x.grad?.dispose();
    expect(gradOf(x)).toEqual([20]);
  });

  it('take a gradient of their own shape and dtype only', () => {
    const x = leaf([1, 2]);
    const g = ones([2], { dtype: 'float64' });
    x.grad = g;
    expect(gradOf(x)).toEqual([1, 1]);
    expect(() => (x.grad = zeros([3], { dtype: 'float64' }))).toThrow(
      'grad: the gradient of this tensor must be [2] of float64 on cpu, got [3] of float64 on cpu',
    );
    expect(() => (x.grad = zeros([2]))).toThrow(/got \[2\] of float32/);
    expect(() => (x.grad = x)).toThrow(/its own gradient/);
    expect(() => (x.grad = 1 as never)).toThrow(/grad: value must be a Tensor/);
  });
});
