import { beforeEach, describe, expect, it } from 'vitest';
import {
  cat,
  clones,
  eye,
  manualSeed,
  ones,
  PositionalEncoding,
  randn,
  seed002,
  subsequentMask,
  tensor,
  zeros,
} from 'torchformer';
import type { Module, Tensor } from 'torchformer';
import { largestDifference, numbers } from '../../support/numbers.js';

beforeEach(() => manualSeed(5));

function keysOf(module: Module): string[] {
  return [...module.stateDict().keys()].sort();
}

function expectClose(actual: Tensor, expected: number[], digits = 5): void {
  const values = numbers(actual);
  expect(values).toHaveLength(expected.length);
  values.forEach((value, index) => expect(value).toBeCloseTo(expected[index] as number, digits));
}

describe('attention of seed 002', () => {
  const [Q, K] = [zeros([1, 1, 1, 1]), zeros([1, 1, 3, 1])];
  const V = tensor([[[[1], [2], [6]]]]);

  it('blocks where its mask is true', () => {
    const mask = tensor([[[[false, false, true]]]]);
    expect(numbers(seed002.attention(Q, K, V, mask))).toEqual([1.5]);
    expect(numbers(seed002.attention(Q, K, V, mask.logicalNot()))).toEqual([6]);
    expect(numbers(seed002.attention(Q, K, V))).toEqual([3]);
  });

  it('puts the heads beside each other', () => {
    // [B 1, H 2, S 2, Dv 2]: every query sees only its own key.
    const values = tensor([
      [
        [
          [1, 2],
          [5, 6],
        ],
        [
          [3, 4],
          [7, 8],
        ],
      ],
    ]);
    const others = eye(2).logicalNot();
    const merged = seed002.attention(zeros([1, 2, 2, 1]), zeros([1, 2, 2, 1]), values, others);
    expect(merged.shape).toEqual([1, 2, 4]);
    expect(numbers(merged)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it.each(['bool', 'uint8', 'int64', 'float32'] as const)(
    'gives the same bits for a causal mask as %s',
    (dtype) => {
      const [q, k, v] = [randn([2, 2, 3, 4]), randn([2, 2, 3, 4]), randn([2, 2, 3, 4])];
      const future = subsequentMask(3).logicalNot();
      const expected = seed002.attention(q, k, v, future);
      expect(numbers(seed002.attention(q, k, v, future.to({ dtype })))).toEqual(numbers(expected));
    },
  );

  it.each([
    ['uniform', 3, 1 / 3],
    ['zero', 0, 0],
  ] as const)('gives a row with every key blocked %s weights, never NaN', (emptyRows, mean, w) => {
    const inputs = [Q, K, V].map((input) => {
      const leaf = input.clone();
      leaf.requiresGrad = true;
      return leaf;
    }) as [Tensor, Tensor, Tensor];
    const output = seed002.attention(...inputs, ones([1, 1, 1, 3]), { emptyRows });
    expectClose(output, [mean]);
    output.sum().backward();
    expectClose(inputs[0].grad as Tensor, [0]);
    expectClose(inputs[1].grad as Tensor, [0, 0, 0]);
    expectClose(inputs[2].grad as Tensor, [w, w, w]);
  });

  it('refuses what it cannot take, and names the sense of its masks', () => {
    expect(() => seed002.attention(zeros([1, 3, 1]), K, V)).toThrow(
      /\[B, H, Sq, Dk\].*\[1, 3, 1\]/,
    );
    expect(() => seed002.attention(Q, K, V, tensor([[[[0, 0, 2]]]]))).toThrow(
      /0 \(may be attended to\) and 1 \(blocked\)/,
    );
    expect(() => seed002.attention(Q, K, V, tensor([[[[0, 0, -Infinity]]]]))).toThrow(
      /mask\.lt\(0\)/,
    );
    expect(() => seed002.attention(Q, K, V, ones([1, 1, 1, 4]))).toThrow(/\[1, 1, 1, 4\]/);
  });
});

describe('MultiHead of seed 002', () => {
  it('has the post’s keys and sizes', () => {
    const multiHead = new seed002.MultiHead();
    expect(keysOf(multiHead)).toEqual(
      ['fc_K', 'fc_Q', 'fc_V', 'norm', 'out_fc'].flatMap((name) => [
        `${name}.bias`,
        `${name}.weight`,
      ]),
    );
    expect(multiHead.fcQ.weight.shape).toEqual([32, 32]);
    expect([multiHead.h, multiHead.dropout.p]).toEqual([4, 0.1]);
  });

  it('norms Q, K and V and adds the un-normed Q', () => {
    const multiHead = new seed002.MultiHead({ dModel: 2, h: 1 }).eval();
    multiHead.loadStateDict({
      // Equal scores; values and output as they are.
      'fc_Q.weight': zeros([2, 2]),
      'fc_Q.bias': zeros([2]),
      'fc_K.weight': zeros([2, 2]),
      'fc_K.bias': zeros([2]),
      'fc_V.weight': eye(2),
      'fc_V.bias': zeros([2]),
      'out_fc.weight': eye(2),
      'out_fc.bias': tensor([0, 100]),
      'norm.weight': ones([2]),
      'norm.bias': zeros([2]),
    });
    const query = tensor([[[10, 20]]]);
    const source = tensor([
      [
        [3, 1],
        [8, 4],
        [0, 6],
      ],
    ]);
    const normed = 1 / Math.sqrt(1 + 1e-5);
    // Two rows with the deviations 1 and 2 become about [1, -1], the third is blocked.
    const mask = tensor([[[[false, false, true]]]]);
    const output = multiHead.forward(query, source, source, mask);
    const second = 2 / Math.sqrt(4 + 1e-5);
    const mean = (normed + second) / 2;
    expectClose(output, [10 + mean, 120 - mean]);
  });

  it.each([1, 2, 3, 4])('%i samples with masks of their own equal each alone', (B) => {
    const multiHead = new seed002.MultiHead({ dModel: 8, h: 4 }).eval();
    const input = randn([B, 3, 8]);
    const blocked = Array.from({ length: B }, (_, sample) =>
      [0, 1, 2].map((key) => key === sample),
    );
    const mask = tensor(blocked).unsqueeze(1).unsqueeze(1);
    const together = multiHead.forward(input, input, input, mask);
    const alone = Array.from({ length: B }, (_, sample) => {
      const one = input.narrow(0, sample, 1);
      return multiHead.forward(one, one, one, mask.narrow(0, sample, 1));
    });
    expect(largestDifference(together, cat(alone, 0))).toBeLessThan(1e-6);
    const batchFirst = multiHead.forward(input, input, input, mask.squeeze(1));
    expect(numbers(batchFirst)).toEqual(numbers(together));
    const full = multiHead.forward(input, input, input, mask.expand([B, 4, 3, 3]));
    expect(numbers(full)).toEqual(numbers(together));
  });

  it('refuses a mask of two dimensions that may be [B, Sk] and [Sq, Sk]', () => {
    const multiHead = new seed002.MultiHead({ dModel: 8, h: 4 }).eval();
    const run = (input: Tensor, mask: Tensor) => multiHead.forward(input, input, input, mask);
    const blocked = zeros([3, 3], { dtype: 'bool' });
    expect(() => run(randn([3, 3, 8]), blocked)).toThrow(RangeError);
    expect(() => run(randn([3, 3, 8]), blocked)).toThrow(
      /mask must be .* for 3 sequences of 3 queries, got \[3, 3\].*mask\.unsqueeze\(1\)/,
    );
    expect(() => run(randn([2, 3, 8]), ones([2, 3]))).toThrow(/does not fit/);
    for (const B of [1, 2]) {
      const input = randn([B, 3, 8]);
      const future = subsequentMask(3).logicalNot();
      expect(numbers(run(input, future.squeeze(0)))).toEqual(numbers(run(input, future)));
    }
  });

  it('drops a tenth of its result, and nothing of the weights', () => {
    const multiHead = new seed002.MultiHead({ dModel: 100, h: 1 });
    const input = randn([1, 100, 100]);
    const kept = multiHead.eval().forward(input, input, input).sub(input);
    const dropped = multiHead.train().forward(input, input, input).sub(input);
    const [before, after] = [numbers(kept), numbers(dropped)];
    let zeroed = 0;
    after.forEach((value, index) => {
      if (value === 0) zeroed++;
      else expect(value).toBeCloseTo((before[index] as number) / 0.9, 4);
    });
    // 10,000 trials of probability 0.1: a deviation of 30.
    expect(Math.abs(zeroed - 1000)).toBeLessThan(150);
    const without = new seed002.MultiHead({ dropout: 0 });
    const vectors = randn([1, 3, 32]);
    const trained = without.forward(vectors, vectors, vectors);
    expect(numbers(trained)).toEqual(numbers(without.eval().forward(vectors, vectors, vectors)));
  });

  it('refuses heads that do not divide and inputs of other shapes', () => {
    expect(() => new seed002.MultiHead({ h: 5 })).toThrow(/h must divide dModel, got 5 heads/);
    const multiHead = new seed002.MultiHead();
    const short = ones([1, 3, 16]);
    expect(() => multiHead.forward(short, short, short)).toThrow(
      /last dimension of query must be 32/,
    );
    expect(() => multiHead.forward(ones([2, 3, 32]), ones([1, 3, 32]), ones([1, 3, 32]))).toThrow(
      /\[2, 3, 32\], \[1, 3, 32\]/,
    );
    expect(() => new seed002.MultiHead({ heads: 4 } as object)).toThrow(/unknown option "heads"/);
  });

  it('can be cloned', () => {
    const multiHead = new seed002.MultiHead();
    const copies = clones(multiHead, 2);
    copies.at(0).fcQ.weight.detach().fill_(1);
    expect(numbers(copies.at(1).fcQ.weight)).toEqual(numbers(multiHead.fcQ.weight));
  });
});

describe('PositionEmbedding of seed 002', () => {
  it('gives each column an exponent of its own', () => {
    const { pe } = new seed002.PositionEmbedding({ dModel: 4 });
    expectClose(pe.select(1, 1), [0.841471, 0.995004, 0.01, 1]);
    expectClose(pe.select(1, 0), [0, 1, 0, 1]);
  });

  it('computes the table anew in another dtype, and refuses one of the paper’s formula', () => {
    const embedding = new seed002.PositionEmbedding({ vocabSize: 3, dModel: 4 });
    const exact = embedding.double().pe.select(1, 1);
    expectClose(exact, [Math.sin(1), Math.cos(0.1), Math.sin(0.01), Math.cos(0.001)], 12);
    const { pe } = new PositionalEncoding(4, { maxLen: 50 });
    const state = { 'embed.weight': zeros([3, 4]), pe };
    expect(() => embedding.loadStateDict(state)).toThrow(/pe: .*another formula/);
  });

  it('has the post’s keys and sizes', () => {
    const embedding = new seed002.PositionEmbedding();
    expect(keysOf(embedding)).toEqual(['embed.weight', 'pe']);
    expect(embedding.pe.shape).toEqual([1, 50, 32]);
    expect(embedding.embed.weight.shape).toEqual([39, 32]);
    expect(embedding.parameters().length).toBe(1);
    expect(embedding.parameters()[0] === embedding.embed.weight).toBe(true);
  });

  it('starts the vectors as normal(0, 0.1)', () => {
    const { weight } = new seed002.PositionEmbedding({ vocabSize: 1000 }).embed;
    expect(weight.mean().item()).toBeCloseTo(0, 2);
    expect(weight.std().item()).toBeCloseTo(0.1, 2);
  });

  it('adds the positions to the vectors as they are, without dropout', () => {
    const embedding = new seed002.PositionEmbedding();
    const ids = tensor([[7, 7, 38]], { dtype: 'int64' });
    const rows = embedding.embed.weight.detach();
    const expected = cat([rows.narrow(0, 7, 1), rows.narrow(0, 7, 1), rows.narrow(0, 38, 1)], 0)
      .unsqueeze(0)
      .add(embedding.pe.narrow(1, 0, 3));
    expect(numbers(embedding.forward(ids))).toEqual(numbers(expected));
  });

  it('takes 50 positions, refuses 51 naming both, and grows on request', () => {
    const embedding = new seed002.PositionEmbedding();
    const ids = (length: number) => zeros([2, length], { dtype: 'int64' });
    expect(embedding.forward(ids(50)).shape).toEqual([2, 50, 32]);
    expect(() => embedding.forward(ids(51))).toThrow(/51 positions, but the table has 50/);
    const before = numbers(embedding.pe);
    embedding.grow(60);
    expect(embedding.forward(ids(51)).shape).toEqual([2, 51, 32]);
    expect(numbers(embedding.pe.narrow(1, 0, 50))).toEqual(before);
  });

  it('refuses ids outside its vocabulary', () => {
    const ids = tensor([[39]], { dtype: 'int64' });
    expect(() => new seed002.PositionEmbedding().forward(ids)).toThrow(/id 39.*39 entries/);
  });
});

describe('FullyConnectedOutput of seed 002', () => {
  it('has the post’s keys and sizes', () => {
    const output = new seed002.FullyConnectedOutput();
    expect(keysOf(output)).toEqual([
      'fc.0.bias',
      'fc.0.weight',
      'fc.2.bias',
      'fc.2.weight',
      'norm.bias',
      'norm.weight',
    ]);
    expect(output.fc.w1.weight.shape).toEqual([64, 32]);
    expect(output.fc.w2.weight.shape).toEqual([32, 64]);
  });

  it('computes x + fc(norm(x)), ReLU between the layers', () => {
    const output = new seed002.FullyConnectedOutput({ dModel: 2, dFf: 2 }).eval();
    output.loadStateDict({
      'fc.0.weight': eye(2),
      'fc.0.bias': zeros([2]),
      'fc.2.weight': tensor([
        [0, 10],
        [1, 0],
      ]),
      'fc.2.bias': tensor([0, 5]),
      'norm.weight': ones([2]),
      'norm.bias': zeros([2]),
    });
    // norm: about [1, -1]; ReLU: [1, 0]
    const normed = 1 / Math.sqrt(1 + 1e-5);
    expectClose(output.forward(tensor([[3, 1]])), [3, 6 + normed]);
  });

  it('drops a tenth behind the second layer, nothing between', () => {
    const output = new seed002.FullyConnectedOutput({ dModel: 100 });
    const input = randn([100, 100]);
    const kept = numbers(output.eval().forward(input).sub(input));
    const dropped = numbers(output.train().forward(input).sub(input));
    let zeroed = 0;
    dropped.forEach((value, index) => {
      if (value === 0) zeroed++;
      else expect(value).toBeCloseTo((kept[index] as number) / 0.9, 4);
    });
    expect(Math.abs(zeroed - 1000)).toBeLessThan(150);
  });
});
