import { beforeEach, describe, expect, it } from 'vitest';
import {
  cat,
  LayerNorm,
  Linear,
  makeModel,
  manualSeed,
  memory,
  ones,
  randn,
  seed000,
  subsequentMask,
  tensor,
  tidy,
  zeros,
} from 'torchformer';
import type { Module, Tensor } from 'torchformer';
import { largestDifference, numbers } from '../../support/numbers.js';

beforeEach(() => manualSeed(4));

function keysOf(module: Module): string[] {
  return [...module.stateDict().keys()].sort();
}

function expectClose(actual: Tensor, expected: number[], digits = 5): void {
  const values = numbers(actual);
  expect(values).toHaveLength(expected.length);
  values.forEach((value, index) => expect(value).toBeCloseTo(expected[index] as number, digits));
}

describe('LayerNorm of seed 000', () => {
  it('divides by the sample deviation, eps added to it', () => {
    const row = tensor([[1, 0, 0, 0]]);
    expectClose(new seed000.LayerNorm(4).forward(row), [1.499997, -0.499999, -0.499999, -0.499999]);
    // An eps of 0.5, which is the deviation: everything is halved.
    expectClose(new seed000.LayerNorm(4, { eps: 0.5 }).forward(row), [0.75, -0.25, -0.25, -0.25]);
  });

  it('scales by k and shifts by b, its keys', () => {
    const norm = new seed000.LayerNorm(4);
    norm.loadStateDict({ k: tensor([2, 2, 2, 0]), b: tensor([1, 0, 0, 7]) });
    expectClose(norm.forward(tensor([1, 0, 0, 0])), [3.999994, -0.999998, -0.999998, 7]);
    expect(numbers(norm.k)).toEqual([2, 2, 2, 0]);
    expect(numbers(norm.b)).toEqual([1, 0, 0, 7]);
    expect(keysOf(norm)).toEqual(['b', 'k']);
  });

  it('has a finite gradient at a row of equal values', () => {
    const row = tensor([[3, 3, 3, 3]], { dtype: 'float64', requiresGrad: true });
    const norm = new seed000.LayerNorm(4).double();
    norm.forward(row).backward({ gradient: tensor([[1, 2, 3, 4]], { dtype: 'float64' }) });
    expectClose((row.grad as Tensor).div(1e6), [-1.5, -0.5, 0.5, 1.5]);
  });

  it('refuses a single feature, and options it does not have', () => {
    expect(() => new seed000.LayerNorm(1)).toThrow(/at least 2/);
    expect(() => new seed000.LayerNorm(4, { deviation: 'sample' } as object)).toThrow(
      /unknown option "deviation"; valid options: eps/,
    );
  });

  it('goes into other models as an option', () => {
    const sizes = { N: 1, dModel: 4, dFf: 8, h: 2 };
    const model = makeModel(11, { ...sizes, norm: seed000.norm });
    expect(keysOf(model)).toContain('encoder.layers.0.sublayers.0.norm.k');
    const row = tensor([[1, 0, 0, 0]]);
    expect(numbers(model.encoder.norm?.forward(row) as Tensor)).toEqual(
      numbers(new seed000.LayerNorm(4).forward(row)),
    );
  });

  it('does not load the weights of another definition, and says whose they are', () => {
    const other = new LayerNorm(4).stateDict();
    expect(() => new seed000.LayerNorm(4).loadStateDict(other)).toThrow(/seed 001/);
  });
});

describe('SubLayerConnection of seed 000', () => {
  const row = tensor([[1, 0, 0, 0]]);
  const triple = (input: Tensor) => input.mul(3);

  it('norms before the sublayer by default: x + f(norm(x))', () => {
    const connection = new seed000.SubLayerConnection(4, { dropout: 0 });
    expectClose(connection.forward(row, triple), [5.499991, -1.499997, -1.499997, -1.499997]);
  });

  it('norms the sum for order post: norm(x + f(x))', () => {
    const connection = new seed000.SubLayerConnection(4, { dropout: 0, order: 'post' });
    // The sum [4, 0, 0, 0] has mean 1 and sample deviation 2.
    expectClose(connection.forward(row, triple), [1.499999, -0.5, -0.5, -0.5]);
  });

  it.each(['pre', 'post'] as const)('takes a module as sublayer, order %s', (order) => {
    const connection = new seed000.SubLayerConnection(4, { order }).eval();
    const linear = new Linear(4, 4);
    const byModule = connection.forward(row, linear);
    const byFunction = connection.forward(row, (input) => linear.forward(input));
    expect(numbers(byModule)).toEqual(numbers(byFunction));
  });

  it('drops a fifth of the sublayer’s result in training, nothing in evaluation', () => {
    const connection = new seed000.SubLayerConnection(100);
    const result = (): number[] =>
      numbers(connection.forward(zeros([100, 100]), () => ones([100, 100])));
    const values = result();
    expect(new Set(values)).toEqual(new Set([0, 1.25]));
    const dropped = values.filter((value) => value === 0).length;
    // 10,000 trials of probability 0.2: a deviation of 40.
    expect(Math.abs(dropped - 2000)).toBeLessThan(200);
    connection.eval();
    expect(new Set(result())).toEqual(new Set([1]));
  });

  it('has the keys layer_norm.k and layer_norm.b, whatever the order', () => {
    for (const order of ['pre', 'post'] as const) {
      const connection = new seed000.SubLayerConnection(4, { order });
      expect(keysOf(connection)).toEqual(['layer_norm.b', 'layer_norm.k']);
    }
  });

  it('refuses an order it does not know', () => {
    const options = { order: 'middle' } as object;
    expect(() => new seed000.SubLayerConnection(4, options)).toThrow(/'pre'.*'post'.*"middle"/);
  });
});

describe('FeedForward of seed 000', () => {
  it('computes linear_2(relu(linear_1(x)))', () => {
    const feedForward = new seed000.FeedForward(1, 2, { dropout: 0 });
    feedForward.loadStateDict({
      'linear_1.weight': tensor([[1], [-1]]),
      'linear_1.bias': tensor([0.5, 0]),
      'linear_2.weight': tensor([[10, 100]]),
      'linear_2.bias': tensor([1]),
    });
    expect(numbers(feedForward.forward(tensor([[2], [-3]])))).toEqual([26, 301]);
  });

  it('drops a fifth between the two layers', () => {
    const feedForward = new seed000.FeedForward(1, 10000);
    feedForward.loadStateDict({
      'linear_1.weight': zeros([10000, 1]),
      'linear_1.bias': ones([10000]),
      'linear_2.weight': ones([1, 10000]),
      'linear_2.bias': zeros([1]),
    });
    // The sum of 10,000 values of mean 1, deviation 50.
    const sum = (): number => feedForward.forward(ones([1, 1])).item();
    expect(Math.abs(sum() - 10000)).toBeLessThan(250);
    expect(sum()).not.toBe(10000);
    feedForward.eval();
    expect(sum()).toBe(10000);
  });
});

describe('attention and clone of seed 000', () => {
  it('attention gives the result and the weights', () => {
    const value = tensor([[[1], [2], [3]]]);
    const mask = tensor([[[1, 0, 1]]]);
    const [C, weight] = seed000.attention(zeros([1, 1, 1]), zeros([1, 3, 1]), value, { mask });
    expect(numbers(C)).toEqual([2]);
    expect(numbers(weight as Tensor)).toEqual([0.5, 0, 0.5]);
  });

  it('clone makes copies that share nothing', () => {
    const linear = new Linear(2, 2);
    const copies = seed000.clone(linear, 3);
    expect(copies).toHaveLength(3);
    copies.at(0).weight.detach().fill_(9);
    expect(numbers(copies.at(1).weight)).toEqual(numbers(linear.weight));
  });
});

describe('MultiHeadAttention of seed 000', () => {
  it('has the keys linear_list.0 to linear_list.3', () => {
    expect(keysOf(new seed000.MultiHeadAttention(4, 2))).toEqual(
      [0, 1, 2, 3].flatMap((n) => [`linear_list.${n}.bias`, `linear_list.${n}.weight`]),
    );
  });

  /** Sample 0 may not see key 2, sample 1 not key 0, sample 2 everything. */
  const masks = tensor([
    [
      [1, 1, 0],
      [1, 1, 0],
      [1, 1, 0],
    ],
    [
      [0, 1, 1],
      [0, 1, 1],
      [0, 1, 1],
    ],
    [
      [1, 1, 1],
      [1, 1, 1],
      [1, 1, 1],
    ],
  ]);

  it.each([1, 2, 3])('takes a mask [B, S, S] batch first: %i samples equal each alone', (B) => {
    // With 2 heads and B = 2, a mask taken for one of the heads would fit too.
    const multiHead = new seed000.MultiHeadAttention(4, 2).eval();
    const input = randn([B, 3, 4]);
    const mask = masks.narrow(0, 0, B);
    const together = multiHead.forward(input, input, input, mask);
    const alone = Array.from({ length: B }, (_, sample) => {
      const one = input.narrow(0, sample, 1);
      return multiHead.forward(one, one, one, mask.narrow(0, sample, 1));
    });
    expect(largestDifference(together, cat(alone, 0))).toBeLessThan(1e-6);
    // The mask matters.
    const unmasked = multiHead.forward(input, input, input);
    expect(largestDifference(together, unmasked)).toBeGreaterThan(1e-3);
  });

  it('serves as self-attention, masked self-attention and cross-attention', () => {
    const multiHead = new seed000.MultiHeadAttention(4, 2).eval();
    const [target, memory] = [randn([2, 3, 4]), randn([2, 5, 4])];
    expect(multiHead.forward(memory, memory, memory).shape).toEqual([2, 5, 4]);
    expect(multiHead.forward(target, memory, memory).shape).toEqual([2, 3, 4]);
    const masked = multiHead.forward(target, target, target, subsequentMask(3));
    // The first position sees only itself, so the others do not matter.
    const first = target.narrow(1, 0, 1);
    const alone = multiHead.forward(first, first, first);
    expect(largestDifference(masked.narrow(1, 0, 1), alone)).toBeLessThan(1e-6);
  });

  it.each(['bool', 'uint8', 'int64', 'float32'] as const)(
    'gives the same bits for a mask as %s',
    (dtype) => {
      const multiHead = new seed000.MultiHeadAttention(4, 2).eval();
      const input = randn([2, 3, 4]);
      const causal = subsequentMask(3);
      const expected = multiHead.forward(input, input, input, causal);
      const output = multiHead.forward(input, input, input, causal.to({ dtype }));
      expect(numbers(output)).toEqual(numbers(expected));
    },
  );

  it('gives a row with every key blocked equal weights, and finite gradients', () => {
    const multiHead = new seed000.MultiHeadAttention(4, 2, { keepAttention: true, dropout: 0 });
    const input = randn([1, 3, 4], { requiresGrad: true });
    multiHead
      .forward(input, input, input, zeros([1, 3, 3]))
      .sum()
      .backward();
    for (const weight of numbers(multiHead.weight as Tensor)) expect(weight).toBeCloseTo(1 / 3, 6);
    expect(numbers(input.grad as Tensor).every(Number.isFinite)).toBe(true);
  });

  it('keeps the weights only when asked, and does not change its result by that', () => {
    const multiHead = new seed000.MultiHeadAttention(4, 2).eval();
    const input = randn([2, 3, 4]);
    const without = tidy(() => multiHead.forward(input, input, input));
    expect(multiHead.weight).toBeNull();
    multiHead.keepAttention = true;
    const before = memory().tensors;
    for (let count = 0; count < 3; count++) {
      const output = tidy(() => multiHead.forward(input, input, input));
      expect(numbers(output)).toEqual(numbers(without));
      output.dispose();
    }
    expect(multiHead.weight?.shape).toEqual([2, 2, 3, 3]);
    expect(memory().tensors).toBe(before + 1);
    expect(seed000.clone(multiHead, 2).at(0).weight).toBeNull();
    multiHead.dispose();
    expect(multiHead.weight).toBeNull();
  });

  it('drops a fifth of the weights in training', () => {
    const multiHead = new seed000.MultiHeadAttention(2, 1, { keepAttention: true });
    const input = ones([1, 100, 2]);
    tidy(() => multiHead.forward(input, input, input));
    const weights = numbers(multiHead.weight as Tensor);
    const dropped = weights.filter((weight) => weight === 0).length;
    expect(Math.abs(dropped - 2000)).toBeLessThan(200);
    for (const weight of weights.filter((value) => value > 0)) expect(weight).toBeCloseTo(0.0125);
  });

  it('refuses heads that do not divide, and masks that do not fit, naming both', () => {
    expect(() => new seed000.MultiHeadAttention(6, 4)).toThrow(
      /MultiHeadAttention: numHeads must divide dModel, got 4 heads for dModel 6/,
    );
    const multiHead = new seed000.MultiHeadAttention(4, 2);
    const input = randn([2, 3, 4]);
    const forward = (mask: Tensor) => () => multiHead.forward(input, input, input, mask);
    expect(forward(ones([3, 3, 3]))).toThrow(/\[3, 3, 3\].*\[2, 2, 3, 3\]/);
    expect(forward(ones([2, 3]))).toThrow(RangeError);
    expect(forward(zeros([1, 3, 3]).sub(1e9))).toThrow(/additiveMask/);
  });
});
