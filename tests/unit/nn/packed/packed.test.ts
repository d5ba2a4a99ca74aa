import { beforeEach, describe, expect, it } from 'vitest';
import {
  callTensor,
  Generator,
  getNumThreads,
  isPackable,
  makeBatch,
  makeModel,
  manualSeed,
  MultiHeadedAttention,
  noGrad,
  PackedMask,
  PackedSequences,
  paddingMask,
  PositionwiseFeedForward,
  randn,
  setNumThreads,
  tensor,
  tokenLossSum,
  type Batch,
  type LabelSmoothingOptions,
  type ModelOptions,
  type PackedInput,
  type Tensor,
  type Transformer,
} from 'torchformer';
import { largestDifference } from '../../../support/numbers.js';

beforeEach(() => manualSeed(1));

const pairs = [
  { src: [1, 5, 6, 2], tgt: [1, 7, 2], row: 1 },
  { src: [1, 2], tgt: [1, 8, 9, 10, 11, 2], row: 2 },
  { src: [1, 4, 4, 4, 9, 2], tgt: [1, 2], row: 3 },
];

const small: ModelOptions = {
  N: 2,
  dModel: 12,
  dFf: 20,
  h: 3,
  dropout: 0,
  attentionDropout: 0,
  maxLen: 8,
};

describe('PackedSequences', () => {
  it('know where each sequence begins and each row stands', () => {
    const sequences = new PackedSequences([2, 0, 3]);
    expect([...sequences.offsets.data()].map(Number)).toEqual([0, 2, 2, 5]);
    expect([...sequences.positions.data()].map(Number)).toEqual([0, 1, 0, 1, 2]);
    expect([sequences.tokens, sequences.longest]).toEqual([5, 3]);
  });

  it('refuse lengths that are none', () => {
    expect(() => new PackedSequences([1, -1])).toThrow(/lengths\[1\]/);
    expect(() => new PackedSequences(3 as never)).toThrow(/lengths/);
  });
});

describe('packed attention', () => {
  it('is the mean of the values where all scores are equal, in each sequence alone', () => {
    const zeros = tensor([[0], [0], [0]]);
    const values = tensor([[1], [3], [10]]);
    const offsets = tensor([0, 2, 3], { dtype: 'int64' });
    const attend = (causal: boolean) =>
      callTensor(
        'torchformer::packed_attention',
        zeros,
        zeros,
        values,
        offsets,
        offsets,
        1,
        causal,
      );
    expect(attend(false).toArray()).toEqual([[2], [2], [10]]);
    expect(attend(true).toArray()).toEqual([[1], [2], [10]]);
  });

  it('to a sequence without keys is zero, and so is its gradient', () => {
    const query = randn([3, 4]).requiresGrad_();
    const keys = randn([2, 4]).requiresGrad_();
    const output = callTensor(
      'torchformer::packed_attention',
      query,
      keys,
      keys,
      tensor([0, 1, 3], { dtype: 'int64' }),
      tensor([0, 2, 2], { dtype: 'int64' }),
      2,
    );
    output.sum().backward();
    expect(output.narrow(0, 1, 2).abs().max().item()).toBe(0);
    expect(query.grad?.narrow(0, 1, 2).abs().max().item()).toBe(0);
    expect(output.narrow(0, 0, 1).abs().max().item()).toBeGreaterThan(0);
  });

  it('equals the module on a padded batch, sequence by sequence', () => {
    const module = new MultiHeadedAttention(2, 8, { dropout: 0 });
    const lengths = [3, 1, 5];
    const sequences = new PackedSequences(lengths);
    const rows = randn([9, 8]);
    const packed = module.forward(rows, rows, rows, new PackedMask(sequences, sequences));
    const whole = [0, 3, 4].map((start, index) => {
      const alone = rows.narrow(0, start, lengths[index] as number).unsqueeze(0);
      return largestDifference(
        module.forward(alone, alone, alone, null).squeeze(0),
        packed.narrow(0, start, lengths[index] as number),
      );
    });
    expect(Math.max(...whole)).toBeLessThan(1e-6);
  });

  it('drops the weights with their probability, scales the others, and again so in backward', () => {
    const n = 300;
    const zeros = tensor(Array.from({ length: n }, () => [0]));
    const values = tensor(Array.from({ length: n }, () => [1])).requiresGrad_();
    const offsets = tensor([0, n], { dtype: 'int64' });
    const output = callTensor(
      'torchformer::packed_attention',
      zeros,
      zeros,
      values,
      offsets,
      offsets,
      1,
      false,
      0.25,
    );
    output.sum().backward();
    // 90,000 weights of 1/300, kept with probability 3/4: the mean of the outputs is 1 ± 0.002.
    expect(Math.abs(output.mean().item() - 1)).toBeLessThan(0.01);
    expect(values.grad?.sum().item()).toBeCloseTo(output.sum().item(), 2);
    const column = values.grad as Tensor;
    expect(column.std().item()).toBeGreaterThan(0);
  });

  it('drops the same weights for the same seed, whatever the number of threads', () => {
    const sequences = new PackedSequences([40, 3, 25, 17]);
    const rows = randn([85, 16]);
    const { offsets } = sequences;
    const threads = getNumThreads();
    const run = (count: number) => {
      setNumThreads(count);
      manualSeed(3);
      return callTensor(
        'torchformer::packed_attention',
        rows,
        rows,
        rows,
        offsets,
        offsets,
        4,
        true,
        0.5,
      );
    };
    try {
      const one = run(1);
      for (const count of [2, 7]) expect(largestDifference(one, run(count))).toBe(0);
    } finally {
      setNumThreads(threads);
    }
  });

  it.each<[string, (rows: Tensor, offsets: Tensor) => unknown, RegExp]>([
    [
      'heads that do not divide',
      (x, o) => callTensor('torchformer::packed_attention', x, x, x, o, o, 3),
      /heads \(3\)/,
    ],
    [
      'offsets that end early',
      (x) => {
        const o = tensor([0, 1], { dtype: 'int64' });
        return callTensor('torchformer::packed_attention', x, x, x, o, o, 2);
      },
      /from 0 to the 2 rows/,
    ],
    [
      'offsets that fall',
      (x) => {
        const o = tensor([0, 3, 2], { dtype: 'int64' });
        return callTensor('torchformer::packed_attention', x, x, x, o, o, 2);
      },
      /must not fall/,
    ],
    [
      'offsets of floats',
      (x) => {
        const o = tensor([0, 2]);
        return callTensor('torchformer::packed_attention', x, x, x, o, o, 2);
      },
      /int64/,
    ],
    [
      'causal attention to other sequences',
      (x, o) =>
        callTensor(
          'torchformer::packed_attention',
          x,
          x,
          x,
          o,
          tensor([0, 2], { dtype: 'int64' }),
          2,
          true,
        ),
      /equal|same number/,
    ],
    [
      'keys of another width',
      (x, o) => callTensor('torchformer::packed_attention', x, randn([2, 6]), x, o, o, 2),
      /key must be/,
    ],
  ])('refuses %s', (_name, run, message) => {
    expect(() => run(randn([2, 4]), tensor([0, 1, 2], { dtype: 'int64' }))).toThrow(message);
  });

  it('refuses a module that keeps its weights', () => {
    const module = new MultiHeadedAttention(2, 8, { keepAttention: true });
    const sequences = new PackedSequences([2]);
    const rows = randn([2, 8]);
    expect(() => module.forward(rows, rows, rows, new PackedMask(sequences, sequences))).toThrow(
      /keepAttention/,
    );
  });
});

describe('a packed batch', () => {
  const lossAndGradients = (
    model: Transformer,
    packed: boolean,
    smoothing: LabelSmoothingOptions = {},
  ) => {
    const batch = makeBatch(pairs, 0);
    if (!packed) delete (batch as { packed?: unknown }).packed;
    model.zeroGrad();
    const loss = tokenLossSum(model, batch, 0, { scale: 1 / batch.ntokens, ...smoothing });
    loss.backward();
    const gradients = model.parameters().map((p) => (p.grad as Tensor).clone());
    batch.dispose();
    return { loss: loss.item(), gradients };
  };

  const variants: [string, ModelOptions][] = [
    ['of seed 001', {}],
    ['post-norm with tied embeddings', { order: 'post', tie: 'all' }],
    [
      'with RMSNorm, SwiGLU and learned positions',
      { norm: { kind: 'rms' }, activation: 'swiglu', positions: 'learned' },
    ],
    [
      'with seed 000’s norm and no positions',
      { norm: { std: 'sample', epsPlace: 'outside' }, positions: 'none' },
    ],
  ];

  it.each(variants)(
    'has the loss and gradients of the padded one: a model %s',
    (_name, options) => {
      const model = makeModel(12, { ...small, ...options });
      expect(isPackable(model)).toBe(true);
      const padded = lossAndGradients(model, false);
      const packed = lossAndGradients(model, true);
      expect(Math.abs(packed.loss - padded.loss)).toBeLessThan(1e-5 * padded.loss);
      const largest = Math.max(...padded.gradients.map((g) => g.abs().max().item()));
      packed.gradients.forEach((gradient, index) => {
        const difference = largestDifference(gradient, padded.gradients[index] as Tensor);
        expect(difference / largest).toBeLessThan(1e-5);
      });
    },
  );

  it.each(['crossEntropy', 'klDivergence'] as const)(
    'has the smoothed loss and gradients of the padded one: %s',
    (smoothingForm) => {
      const smoothing = { labelSmoothing: 0.1, smoothingForm };
      const model = makeModel(12, small);
      const padded = lossAndGradients(model, false, smoothing);
      const packed = lossAndGradients(model, true, smoothing);
      expect(Math.abs(packed.loss - padded.loss)).toBeLessThan(1e-5 * padded.loss);
      expect(Math.abs(packed.loss - lossAndGradients(model, true).loss)).toBeGreaterThan(1e-3);
      const largest = Math.max(...padded.gradients.map((g) => g.abs().max().item()));
      packed.gradients.forEach((gradient, index) => {
        const difference = largestDifference(gradient, padded.gradients[index] as Tensor);
        expect(difference / largest).toBeLessThan(1e-5);
      });
    },
  );

  it('has the vectors of the padded one', () => {
    const model = makeModel(12, small).eval();
    const batch = makeBatch(pairs, 0);
    const [padded, packed] = noGrad((): [Tensor, Tensor] => [
      model.forward(batch.src, batch.tgt, batch.srcMask, batch.tgtMask).flatten(0, 1),
      model.forwardPacked(batch.packed as PackedInput),
    ]);
    const rows = callTensor('aten::nonzero', batch.tgtY.flatten().ne(0)).squeeze(1);
    expect(largestDifference(padded.indexSelect(0, rows), packed)).toBeLessThan(1e-5);
  });

  it('gives way to tensors that were changed, replaced or copied', () => {
    const model = makeModel(12, small);
    const lossOf = (batch: Batch) => noGrad(() => tokenLossSum(model, batch, 0)).item();
    const batch = makeBatch(pairs, 0);
    const clean = lossOf(batch);
    const noised = batch.src.clone().fill_(3);
    const copy = { ...batch, src: noised };
    expect(copy.packed).toBeUndefined();
    const wanted = lossOf(copy);
    expect(Math.abs(wanted - clean)).toBeGreaterThan(1e-3);
    batch.src.fill_(3);
    expect(batch.packed).toBeUndefined();
    expect(lossOf(batch)).toBe(wanted);
  });

  it('is left alone by a generator of its own, whose forward and hooks then run', () => {
    const model = makeModel(12, small);
    const batch = makeBatch(pairs, 0);
    const lossOf = () => noGrad(() => tokenLossSum(model, batch, 0)).item();
    const before = lossOf();
    let calls = 0;
    const handle = model.generator.registerForwardHook(() => void calls++);
    expect(lossOf()).toBeCloseTo(before, 4);
    expect(calls).toBe(1);
    handle.remove();
    class Sharper extends Generator {
      override forward(input: Tensor): Tensor {
        return super.forward(input.mul(3));
      }
    }
    const sharper = new Sharper(12, 12);
    sharper.loadStateDict(model.generator.stateDict());
    model.generator = sharper;
    expect(Math.abs(lossOf() - before)).toBeGreaterThan(1e-3);
  });

  it('is refused by forwardPacked of a model that needs padding, which names the obstacle', () => {
    const packed = makeBatch(pairs, 0).packed as PackedInput;
    const model = makeModel(12, small);
    model.encoder.registerForwardHook(() => undefined);
    expect(() => model.forwardPacked(packed)).toThrow(/hooks or a user-defined forward in Encoder/);
    class Mixing extends PositionwiseFeedForward {}
    const other = makeModel(12, small);
    other.encoder.layers.at(0).feedForward = new Mixing(12, 20);
    expect(() => other.forwardPacked(packed)).toThrow(/the module Mixing/);
    const third = makeModel(12, small);
    third.encode = (src) => src;
    expect(() => third.forwardPacked(packed)).toThrow(/user-defined encode method/);
  });

  it.each<[string, () => unknown, RegExp]>([
    ['no model', () => isPackable(null as never), /isPackable: model/],
    ['no batch', () => makeModel(12, small).forwardPacked(null as never), /batch must be/],
    [
      'no boundaries',
      () =>
        makeModel(12, small).forwardPacked({
          ...(makeBatch(pairs, 0).packed as PackedInput),
          srcSequences: null as never,
        }),
      /srcSequences/,
    ],
    ['a mask of nothing', () => new PackedMask(null as never, null as never), /queries/],
    [
      'a mask between other numbers of sequences',
      () => new PackedMask(new PackedSequences([1]), new PackedSequences([1, 2])),
      /1 and 2/,
    ],
    [
      'a causal mask between other lengths',
      () => new PackedMask(new PackedSequences([2]), new PackedSequences([3]), true),
      /queries and keys of equal lengths/,
    ],
    ['more tokens than can be', () => new PackedSequences([2 ** 40]), /more than/],
  ])('refuses %s', (_name, run, message) => {
    expect(run).toThrow(message);
  });

  it('is not made where padding changes the meaning: pad within a sequence, an empty source', () => {
    expect(makeBatch([{ src: [1, 0, 2], tgt: [1, 2], row: 1 }], 0).packed).toBeUndefined();
    expect(makeBatch([{ src: [], tgt: [1, 2], row: 1 }], 0).packed).toBeUndefined();
  });

  it.each<[string, (model: Transformer) => unknown]>([
    ['hooks', (model) => model.encoder.registerForwardHook(() => undefined)],
    [
      'a user-defined forward',
      (model) => {
        model.generator.proj.forward = (x) => x;
      },
    ],
    [
      'kept attention weights',
      (model) => {
        model.encoder.layers.at(0).selfAttn = new MultiHeadedAttention(3, 12, {
          keepAttention: true,
        });
      },
    ],
  ])('is left alone by a model with %s', (_name, change) => {
    const model = makeModel(12, small);
    change(model);
    expect(isPackable(model)).toBe(false);
  });

  it('is left alone by rotary positions', () => {
    expect(isPackable(makeModel(12, { ...small, positions: 'rotary', h: 6 }))).toBe(false);
  });

  it('refuses a sequence beyond the table of positions, with both numbers', () => {
    const model = makeModel(12, { ...small, maxLen: 5 });
    expect(() => tokenLossSum(model, makeBatch(pairs, 0), 0)).toThrow(
      /6 positions, but the table has 5/,
    );
  });

  it('of a single sentence of one token is right', () => {
    const model = makeModel(3, small);
    const batch = makeBatch([{ src: [1], tgt: [1, 2], row: 1 }], 0);
    const mask = paddingMask(batch.src, 0);
    const plain = noGrad(() =>
      model.generator.forward(model.forward(batch.src, batch.tgt, mask, batch.tgtMask)),
    );
    const loss = noGrad(() => tokenLossSum(model, batch, 0));
    expect(loss.item()).toBeCloseTo(-plain.flatten().select(0, 2).item(), 5);
  });
});
