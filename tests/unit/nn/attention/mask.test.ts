import { describe, expect, it } from 'vitest';
import {
  attentionMaps,
  booleanMask,
  combineMasks,
  fromAdditiveMask,
  greedy,
  makeModel,
  ones,
  paddingMask,
  randn,
  subsequentMask,
  targetMask,
  tensor,
} from 'torchformer';
import type { Tensor } from 'torchformer';
import { numbers } from '../../../support/numbers.js';

const ids = () =>
  tensor(
    [
      [4, 5, 0],
      [1, 0, 0],
    ],
    { dtype: 'int64' },
  );

describe('making masks', () => {
  it('paddingMask is true where there is no padding', () => {
    const mask = paddingMask(ids(), 0);
    expect([mask.dtype, mask.shape]).toEqual(['bool', [2, 1, 3]]);
    expect(mask.toArray()).toEqual([[[true, true, false]], [[true, false, false]]]);
    expect(paddingMask(ids(), 5).toArray()).toEqual([[[true, false, true]], [[true, true, true]]]);
  });

  it('subsequentMask lets each position see itself and those before', () => {
    expect(subsequentMask(3).toArray()).toEqual([
      [
        [true, false, false],
        [true, true, false],
        [true, true, true],
      ],
    ]);
    expect(subsequentMask(0).shape).toEqual([1, 0, 0]);
  });

  it('targetMask joins both', () => {
    expect(targetMask(ids(), 0).toArray()).toEqual([
      [
        [true, false, false],
        [true, true, false],
        [true, true, false],
      ],
      [
        [true, false, false],
        [true, false, false],
        [true, false, false],
      ],
    ]);
  });

  it('combineMasks allows what every mask allows, whatever their dtypes', () => {
    const numeric = tensor([[[1, 1, 0]]]);
    expect(combineMasks(subsequentMask(3), numeric).toArray()).toEqual([
      [
        [true, false, false],
        [true, true, false],
        [true, true, false],
      ],
    ]);
    expect(() => combineMasks(ones([2, 2]), ones([1, 2, 2]))).toThrow(/same number of dimensions/);
  });

  it('refuse what is no batch of ids, and pads that are no ids', () => {
    expect(() => paddingMask(tensor([1, 2], { dtype: 'int64' }), 0)).toThrow(/2 dimensions.*\[2\]/);
    expect(() => paddingMask(ones([1, 2]), 0)).toThrow(/int64 or int32, got float32/);
    expect(() => targetMask(ids(), 0.5)).toThrow(RangeError);
    expect(() => subsequentMask(-1)).toThrow(RangeError);
  });
});

describe('reading masks', () => {
  it.each(['bool', 'uint8', 'int64', 'int32', 'float32', 'float64', 'float16'] as const)(
    '0 and 1 mean blocked and open in %s',
    (dtype) => {
      const mask = tensor([[1, 0, 1]], { dtype });
      expect(booleanMask('test', mask).toArray()).toEqual([[true, false, true]]);
    },
  );

  it.each([[2], [-1], [0.5], [NaN]])('refuses the value %f', (value) => {
    expect(() => booleanMask('test', tensor([0, 1, value]))).toThrow(TypeError);
  });

  it('points at additiveMask when it sees one', () => {
    const additive = tensor([0, -Infinity]);
    expect(() => booleanMask('test', additive)).toThrow(/pass it as additiveMask/);
    expect(fromAdditiveMask(additive).toArray()).toEqual([true, false]);
    expect(fromAdditiveMask(tensor([0, -1e9])).toArray()).toEqual([true, false]);
    expect(() => fromAdditiveMask(tensor([0, 1]))).toThrow(/only 0 and -Infinity/);
    expect(() => fromAdditiveMask(tensor([true]))).toThrow(/must be floating-point, got bool/);
  });
});

describe('masks together', () => {
  // A single bool mask came back as the caller's own tensor.
  it('are a tensor of their own, even of one mask', () => {
    const mask = subsequentMask(2);
    combineMasks(mask).dispose();
    expect(mask.toArray()).toEqual(subsequentMask(2).toArray());
    expect(combineMasks(mask).toArray()).toEqual(mask.toArray());
  });

  it('allow what all of them allow', () => {
    const padding = paddingMask(tensor([[4n, 5n, 0n]]), 0);
    expect(combineMasks(padding, subsequentMask(3)).int().toArray()).toEqual([
      [
        [1, 0, 0],
        [1, 1, 0],
        [1, 1, 0],
      ],
    ]);
  });

  it('must have equal sizes, or 1', () => {
    expect(() => combineMasks(subsequentMask(3), subsequentMask(4))).toThrow(
      'combineMasks: masks must have equal sizes, or 1, got [1, 3, 3] and [1, 4, 4]',
    );
  });
});

describe("a decoder's mask of the opposite sense", () => {
  const model = makeModel(9, { N: 1, dModel: 4, dFf: 4, h: 1 });
  const ids = tensor([[1n, 2n, 3n]]);
  const run = (tgtMask: Tensor) => model.forward(ids, ids, null, tgtMask);

  it('is refused, in every dtype', () => {
    const inverted = subsequentMask(3).logicalNot();
    for (const mask of [inverted, inverted.to({ dtype: 'uint8' }), inverted.float()]) {
      expect(() => run(mask)).toThrow(
        /Decoder: tgtMask blocks every position from itself and allows later ones.*logicalNot/,
      );
    }
  });

  /** Token 3 is padding: `[B, T]` from strings of tokens. */
  const rows = (...texts: string[]) => tensor(texts.map((text) => [...text].map(BigInt)));
  const causal = (T: number) => subsequentMask(T);
  const eye = (T: number) => ones([T, T]).tril().triu().to({ dtype: 'bool' });
  const within = (T: number, width: number) => ones([1, T, T]).triu(-width).to({ dtype: 'bool' });
  const decode = (mask: Tensor) => {
    const [B, T] = [mask.shape.length === 2 ? 1 : (mask.shape[0] as number), mask.shape.at(-1)];
    const tokens = ones([B, T as number], { dtype: 'int64' });
    return model.forward(tokens, tokens, null, mask);
  };

  // The mask was told from its inverse only where no row of the batch had padding.
  it.each<[string, () => Tensor]>([
    ['two tokens', () => causal(2)],
    ['padding in a row', () => targetMask(rows('111', '133'), 3)],
    ['padding in each row', () => targetMask(rows('1133', '1113'), 3)],
    ['a row of padding', () => targetMask(rows('3333', '1113'), 3)],
    ['padding first', () => targetMask(rows('3311', '3111'), 3)],
    ['padding inside', () => targetMask(rows('1313', '1131'), 3)],
    ['a window', () => causal(6).logicalAnd(within(6, 2))],
    [
      'a window and padding',
      () => targetMask(rows('111133', '331111'), 3).logicalAnd(within(6, 2)),
    ],
    [
      'rows of padding blocked',
      () => {
        const ids = rows('1133', '3111');
        return targetMask(ids, 3).logicalAnd(paddingMask(ids, 3).transpose(-1, -2));
      },
    ],
    ['the diagonal open for padding', () => targetMask(rows('1133', '3311'), 3).logicalOr(eye(4))],
    ['one matrix without a batch', () => causal(4).squeeze(0)],
  ])('is refused with %s, while the right one is taken', (_what, make) => {
    const mask = make();
    expect(decode(mask).shape.at(-1)).toBe(4);
    expect(() => decode(mask.logicalNot())).toThrow(/pass mask\.logicalNot\(\)/);
  });

  it('is refused where its padding is blocked the right way', () => {
    const mask = causal(4)
      .logicalNot()
      .logicalAnd(paddingMask(rows('1133', '1113'), 3));
    expect(() => decode(mask)).toThrow(/logicalNot/);
  });

  it.each<[string, () => Tensor]>([
    ['all open', () => ones([2, 4, 4], { dtype: 'bool' })],
    ['all blocked', () => ones([2, 4, 4], { dtype: 'bool' }).logicalNot()],
    ['padding alone', () => paddingMask(rows('1133', '1113'), 3).expand([2, 4, 4])],
    ['left padding alone', () => paddingMask(rows('3111', '3311'), 3).expand([2, 4, 4])],
    ['a prefix', () => causal(4).logicalOr(tensor([[[true, true, false, false]]]))],
    ['a window to both sides', () => within(5, 1).logicalAnd(within(5, 1).transpose(-1, -2))],
    ['everything later, itself included', () => ones([1, 4, 4]).triu().to({ dtype: 'bool' })],
    ['all but itself', () => eye(4).logicalNot()],
    ['all but itself, of two', () => eye(2).logicalNot()],
    [
      'all but itself and padding',
      () =>
        eye(4)
          .logicalNot()
          .logicalAnd(paddingMask(rows('1113', '1133'), 3)),
    ],
    ['all before, not itself', () => ones([1, 4, 4]).tril(-1).to({ dtype: 'bool' })],
    [
      'two texts in a row',
      () =>
        causal(4).logicalAnd(
          tensor([
            [
              [1, 1, 0, 0],
              [1, 1, 0, 0],
              [0, 0, 1, 1],
              [0, 0, 1, 1],
            ],
          ]).eq(1),
        ),
    ],
    ['one token before padding, inverted', () => targetMask(rows('1333'), 3).logicalNot()],
  ])('is not suspected in a mask with %s', (_what, make) => {
    expect(decode(make()).shape.at(-1)).toBe(4);
  });

  it('is not suspected in masks that block whole sequences, or have one position', () => {
    expect(run(targetMask(tensor([[0n, 0n, 0n]]), 0)).shape).toEqual([1, 3, 4]);
    expect(run(subsequentMask(3)).shape).toEqual([1, 3, 4]);
    const one = tensor([[1n]]);
    expect(model.forward(one, one, null, tensor([[[0]]])).shape).toEqual([1, 1, 4]);
  });
});

describe('masks of two dimensions, given to a model', () => {
  const model = makeModel(9, { N: 1, dModel: 4, dFf: 4, h: 1 }).eval();
  const [encoderLayer, decoderLayer] = [model.encoder.layers.at(0), model.decoder.layers.at(0)];
  /** B equals S equals T; 0 is padding. */
  const src = tensor([
    [1n, 2n, 0n],
    [3n, 4n, 5n],
    [6n, 0n, 0n],
  ]);
  const flat = src.ne(0);
  const memory = randn([3, 3, 4]);

  it.each<[string, string, (mask: Tensor) => unknown]>([
    ['Transformer.encode', 'Encoder: mask', (mask) => model.encode(src, mask)],
    ['Transformer.decode', 'Decoder: srcMask', (mask) => model.decode(memory, mask, src, null)],
    ['Transformer.forward', 'Encoder: mask', (mask) => model.forward(src, src, mask, null)],
    [
      'attentionMaps',
      'Encoder: mask',
      (mask) => attentionMaps(model, { src, tgt: src, srcMask: mask }),
    ],
    ['Encoder', 'Encoder: mask', (mask) => model.encoder.forward(memory, mask)],
    ['EncoderLayer', 'EncoderLayer: mask', (mask) => encoderLayer.forward(memory, mask)],
    [
      'DecoderLayer',
      'DecoderLayer: srcMask',
      (mask) => decoderLayer.forward(memory, memory, mask, null),
    ],
  ])('are refused for the source: %s', (_what, parameter, run) => {
    const others = [ones([3, 3]), ones([1, 3]), ones([2, 3], { dtype: 'int64' })];
    for (const mask of [flat, ...others]) {
      const expected = `${parameter} must be [B, 1, S], [B|1, S, S] or [B|1, H|1, S|1, S], got [${mask.shape.join(', ')}]`;
      expect(() => run(mask)).toThrow(RangeError);
      expect(() => run(mask)).toThrow(expected);
      expect(() => run(mask)).toThrow(/mask\.unsqueeze\(1\) for a mask \[B, S\]/);
    }
    for (const right of [flat.unsqueeze(1), ones([1, 3, 3]), ones([1, 1, 1, 3])]) {
      expect(() => run(right)).not.toThrow();
    }
  });

  it('are refused by a search, which hands them to the model', async () => {
    const search = greedy(model, src, flat, { bos: 1, eos: 2, pad: 0 });
    await expect(search).rejects.toThrow(/Encoder: mask must be \[B, 1, S\]/);
  });

  it.each<[string, string, (mask: Tensor) => unknown]>([
    ['Transformer.decode', 'Decoder', (mask) => model.decode(memory, null, src, mask)],
    ['Transformer.forward', 'Decoder', (mask) => model.forward(src, src, null, mask)],
    ['attentionMaps', 'Decoder', (mask) => attentionMaps(model, { src, tgt: src, tgtMask: mask })],
    ['DecoderLayer', 'DecoderLayer', (mask) => decoderLayer.forward(memory, memory, null, mask)],
  ])('are refused for the target where B equals T: %s', (_what, owner, run) => {
    const causal = subsequentMask(3);
    for (const mask of [flat, causal.squeeze(0)]) {
      expect(() => run(mask)).toThrow(RangeError);
      expect(() => run(mask)).toThrow(
        `${owner}: tgtMask must be [B|1, T|1, T] or [B|1, H|1, T|1, T] for 3 targets, got [3, 3]`,
      );
      expect(() => run(mask)).toThrow(/pass targetMask\(tgt, pad\), or mask\.unsqueeze\(0\)/);
    }
    for (const right of [causal, targetMask(src, 0), ones([1, 3])]) {
      expect(() => run(right)).not.toThrow();
    }
  });

  it('are one matrix for all targets where B and T differ', () => {
    const two = src.narrow(0, 0, 2);
    const causal = subsequentMask(3);
    const run = (mask: Tensor) => numbers(model.forward(two, two, null, mask));
    expect(run(causal.squeeze(0))).toEqual(run(causal));
    expect(() => run(ones([2, 3]))).toThrow(/got \[2, 3\], which may be \[B, T\]/);
    const one = src.narrow(0, 0, 1);
    expect(() => model.forward(one, one, null, causal.squeeze(0))).not.toThrow();
  });
});
