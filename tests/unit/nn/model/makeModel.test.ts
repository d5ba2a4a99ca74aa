import { beforeEach, describe, expect, it } from 'vitest';
import {
  Dropout,
  EncoderLayer,
  makeModel,
  manualSeed,
  memory,
  MultiHeadedAttention,
  noGrad,
  ones,
  paddingMask,
  targetMask,
  tensor,
  tidy,
} from 'torchformer';
import type { ModelOptions, Tensor, Transformer } from 'torchformer';
import { largestDifference, numbers } from '../../../support/numbers.js';

const small: ModelOptions = { N: 2, dModel: 8, dFf: 16, h: 2 };

function ids(rows: number[][]): Tensor {
  return tensor(rows, { dtype: 'int64' });
}

function run(model: Transformer, src: Tensor, tgt: Tensor): Tensor {
  return model.forward(src, tgt, paddingMask(src, 0), targetMask(tgt, 0));
}

beforeEach(() => manualSeed(7));

describe('makeModel', () => {
  it("has PyTorch's names for every entry, in PyTorch's order", () => {
    const norm = (prefix: string) => [`${prefix}.a_2`, `${prefix}.b_2`];
    const linear = (prefix: string) => [`${prefix}.weight`, `${prefix}.bias`];
    const heads = (prefix: string) => [0, 1, 2, 3].flatMap((n) => linear(`${prefix}.linears.${n}`));
    const layer = (prefix: string, attentions: string[]) => [
      ...attentions.flatMap((name) => heads(`${prefix}.${name}`)),
      ...linear(`${prefix}.feed_forward.w_1`),
      ...linear(`${prefix}.feed_forward.w_2`),
      ...[...attentions, ''].flatMap((_, n) => norm(`${prefix}.sublayers.${n}.norm`)),
    ];
    expect([...makeModel(11, small).stateDict().keys()]).toEqual([
      ...[0, 1].flatMap((n) => layer(`encoder.layers.${n}`, ['self_attn'])),
      ...norm('encoder.norm'),
      ...[0, 1].flatMap((n) => layer(`decoder.layers.${n}`, ['self_attn', 'src_attn'])),
      ...norm('decoder.norm'),
      'src_embed.0.embedding.weight',
      'src_embed.1.pe',
      'tgt_embed.0.embedding.weight',
      'tgt_embed.1.pe',
      ...linear('generator.proj'),
    ]);
  });

  it('draws the weights that PyTorch draws for the same seed', () => {
    // torch.manual_seed(7), then the modules in seed 001's order, torch 2.13.0.
    const expected: Record<string, number[]> = {
      'encoder.layers.0.self_attn.linears.0.weight': [-0.598447204, 0.125063196, -0.400725961],
      'encoder.layers.0.self_attn.linears.0.bias': [-0.119868502, 0.0138428789, -0.201740816],
      'decoder.layers.1.feed_forward.w_2.weight': [-0.234431565, 0.200419486, 0.485993028],
      'decoder.layers.1.feed_forward.w_2.bias': [-0.178678423, 0.0306970775, 0.146226436],
      'src_embed.0.embedding.weight': [-0.498907179, -0.497574091, -0.0140361115],
      'tgt_embed.0.embedding.weight': [0.0388599336, -0.197778046, 0.451207548],
      'generator.proj.weight': [0.485850662, -0.102663465, 0.284234583],
      'generator.proj.bias': [-0.269953251, 0.134491816, -0.341824919],
    };
    const state = makeModel(11, small).stateDict();
    for (const [name, values] of Object.entries(expected)) {
      expect(numbers(state.get(name) as Tensor).slice(0, 3)).toEqual(values.map(Math.fround));
    }
  });

  it('repeats with the seed and differs without', () => {
    const all = () => makeModel(11, small).parameters().flatMap(numbers);
    const first = all();
    expect(all()).not.toEqual(first);
    manualSeed(7);
    expect(all()).toEqual(first);
  });

  it('draws weights within the xavier bound, and leaves biases equal across clones', () => {
    const model = makeModel(11, small);
    const layers = [...model.encoder.layers];
    const [first, second] = layers.map((layer) => layer.selfAttn as MultiHeadedAttention);
    const [a, b] = [first, second] as [MultiHeadedAttention, MultiHeadedAttention];
    expect(largestDifference(a.linears.at(0).weight, b.linears.at(0).weight)).toBeGreaterThan(0);
    expect(largestDifference(a.linears.at(0).weight, a.linears.at(1).weight)).toBeGreaterThan(0);
    expect(numbers(a.linears.at(0).bias as Tensor)).toEqual(
      numbers(b.linears.at(3).bias as Tensor),
    );
    expect(Math.max(...numbers(a.linears.at(0).bias as Tensor).map(Math.abs))).toBeGreaterThan(0);
    for (const [name, parameter] of model.namedParameters()) {
      const [out, inputs] = parameter.shape as [number, number?];
      if (inputs === undefined) continue;
      const bound = Math.sqrt(6 / (out + inputs));
      const largest = Math.max(...numbers(parameter).map(Math.abs));
      expect(largest, name).toBeLessThanOrEqual(bound * (1 + 1e-6));
      expect(largest, name).toBeGreaterThan(bound * 0.8);
    }
  });

  it('has the defaults of the paper and of seed 001', () => {
    const model = makeModel(20, { N: 1 });
    expect(model.config).toEqual({
      vocabSize: 20,
      N: 1,
      dModel: 512,
      dFf: 2048,
      h: 8,
      dropout: 0.1,
      attentionDropout: 0.1,
      maxLen: 200,
      norm: {
        kind: 'layer',
        std: 'population',
        eps: 1e-6,
        epsPlace: 'inside',
        names: 'a_2/b_2',
      },
      order: 'pre',
      finalNorm: true,
      positions: 'paired',
      activation: 'relu',
      tie: 'none',
      bias: { attention: true, feedForward: true, generator: true },
      emptyRows: 'uniform',
    });
    expect(model.training).toBe(true);
    model.dispose();
  });

  it('gives attention its own dropout', () => {
    const model = makeModel(11, { ...small, dropout: 0.3 });
    const text = String(model);
    expect(text.match(/Dropout\(p=0\.1,/g)).toHaveLength(3);
    expect(text.match(/Dropout\(p=0\.3,/g)).toHaveLength(6);
  });

  it.each<[ModelOptions, number, number]>([
    [{}, 0.1, 0.1],
    [{ dropout: 0 }, 0, 0],
    [{ dropout: 0, positions: 'rotary' }, 0, 0],
    [{ dropout: 0, attentionDropout: 0.2 }, 0, 0.2],
    [{ dropout: 0.3 }, 0.3, 0.1],
    [{ dropout: 0.3, attentionDropout: 0 }, 0.3, 0],
  ])('with %j has dropout %d, and %d in attention', (options, dropout, attentionDropout) => {
    const model = makeModel(11, { ...small, ...options });
    expect(model.config).toMatchObject({ dropout, attentionDropout });
    const ofAttention = model
      .modules()
      .filter((module) => module instanceof MultiHeadedAttention)
      .map((module) => module.dropout);
    expect(ofAttention.map(({ p }) => p)).toEqual(Array(6).fill(attentionDropout));
    for (const module of model.modules()) {
      if (module instanceof Dropout && !ofAttention.includes(module))
        expect(module.p).toBe(dropout);
    }
  });

  it('computes the same in both modes with dropout 0', () => {
    const model = makeModel(11, { ...small, dropout: 0 });
    const [src, tgt] = [ids([[4, 5, 6, 7]]), ids([[1, 5, 6]])];
    const training = numbers(model.train().forward(src, tgt, null, null));
    expect(numbers(model.eval().forward(src, tgt, null, null))).toEqual(training);
    expect(numbers(model.train().forward(src, tgt, null, null))).toEqual(training);
  });

  it('leaves nothing but the model behind', () => {
    const before = memory().tensors;
    const model = makeModel(11, small);
    expect(memory().tensors - before).toBe(94);
    model.dispose();
    expect(memory().tensors).toBe(before);
  });

  it.each<[number, ModelOptions, RegExp]>([
    [11, { dModel: 10, h: 4 }, /h must divide dModel, got 4 heads for dModel 10/],
    [0, {}, /vocabSize must be an integer at least 1, got 0/],
    [11, { N: 1.5 }, /N must be an integer/],
    [11, { dropout: 1.5 }, /dropout must be a number from 0 to 1/],
  ])('refuses %i with %j', (vocabSize, options, message) => {
    expect(() => makeModel(vocabSize, options)).toThrow(RangeError);
    expect(() => makeModel(vocabSize, options)).toThrow(message);
  });

  it('refuses unknown options, listing the valid ones', () => {
    expect(() => makeModel(11, { d_model: 4 } as object)).toThrow(
      /"d_model"; valid options: N, activation, attentionDropout, bias, .*tie$/,
    );
  });
});

describe('Transformer', () => {
  it('encodes, decodes and generates log-probabilities', () => {
    const model = makeModel(11, small).eval();
    const [src, tgt] = [ids([[4, 5, 6]]), ids([[1, 7]])] as const;
    const memory = model.encode(src, null);
    const output = model.decode(memory, null, tgt, targetMask(tgt, 0));
    expect([memory.shape, output.shape]).toEqual([
      [1, 3, 8],
      [1, 2, 8],
    ]);
    expect(numbers(run(model, src, tgt))).toEqual(numbers(output));
    const logProbabilities = model.generator.forward(output);
    for (const sum of numbers(logProbabilities.exp().sum(-1))) expect(sum).toBeCloseTo(1, 5);
    expect(largestDifference(model.generator.logits(output).logSoftmax(-1), logProbabilities)).toBe(
      0,
    );
  });

  // Reported elsewhere: a source of padding only made NaN of the rows beside it.
  it('gives a padded row the result of the row alone, beside an empty source', () => {
    const model = makeModel(11, small).eval();
    const src = ids([
      [0, 0, 0],
      [4, 5, 0],
    ]);
    const encoded = model.encode(src, paddingMask(src, 0));
    expect(numbers(encoded).every(Number.isFinite)).toBe(true);
    const alone = model.encode(ids([[4, 5]]), null);
    expect(largestDifference(encoded.narrow(0, 1, 1).narrow(1, 0, 2), alone)).toBeLessThan(1e-5);
    const row = ids([[4, 5, 0]]);
    const padded = model.encode(row, paddingMask(row, 0));
    expect(largestDifference(encoded.narrow(0, 1, 1), padded)).toBeLessThan(1e-5);
    encoded.sum().backward();
    for (const parameter of model.encoder.parameters()) {
      expect(numbers(parameter.grad as Tensor).every(Number.isFinite)).toBe(true);
    }
  });

  it('cannot see the future', () => {
    const model = makeModel(11, small).eval();
    const src = ids([[4, 5]]);
    const first = run(model, src, ids([[1, 2, 3]])).narrow(1, 0, 2);
    const second = run(model, src, ids([[1, 2, 9]])).narrow(1, 0, 2);
    expect(largestDifference(first, second)).toBe(0);
  });

  it('gives every parameter a gradient', () => {
    const model = makeModel(11, small);
    model.generator
      .forward(run(model, ids([[4, 5]]), ids([[1, 2]])))
      .sum()
      .backward();
    for (const [name, parameter] of model.namedParameters())
      expect(parameter.grad, name).not.toBeNull();
  });

  it('takes masks as numbers, and null for none', () => {
    const model = makeModel(11, small).eval();
    const [src, tgt] = [ids([[4, 5, 0]]), ids([[1, 2]])] as const;
    const expected = run(model, src, tgt);
    const numeric = model.forward(
      src,
      tgt,
      paddingMask(src, 0).float(),
      targetMask(tgt, 0).to({ dtype: 'uint8' }),
    );
    expect(numbers(numeric)).toEqual(numbers(expected));
    expect(largestDifference(model.forward(src, tgt, null, null), expected)).toBeGreaterThan(0);
  });

  it('names ids outside the vocabulary, and sequences beyond the table', () => {
    const model = makeModel(11, { ...small, maxLen: 4 });
    expect(() => run(model, ids([[11]]), ids([[1]]))).toThrow(/the id 11 .* has 11 entries/);
    expect(() => run(model, ids([[1]]), ids([[1, 2, 3, 4, 5]]))).toThrow(
      /5 positions, but the table has 4/,
    );
    expect(() => model.encode(ids([[1, 2, 3, 4, 5]]), null)).toThrow(RangeError);
    expect(() => model.encode(tensor([1, 2], { dtype: 'int64' }), null)).toThrow(
      /\[batch, length\]/,
    );
    expect(() => model.encode(ones([1, 2]), null)).toThrow(/int64 or int32/);
  });

  it('growPositions lengthens both tables and the settings', () => {
    const model = makeModel(11, { ...small, maxLen: 4 }).eval();
    model.growPositions(6);
    expect(run(model, ids([[1, 2, 3, 4, 5, 6]]), ids([[1, 2, 3, 4, 5, 6]])).shape).toEqual([
      1, 6, 8,
    ]);
    expect(model.config?.maxLen).toBe(6);
  });

  it('loads weights across lengths of the table', () => {
    const [long, short] = [makeModel(11, { ...small, maxLen: 50 }), makeModel(11, small)] as const;
    expect(short.loadStateDict(long.stateDict())).toEqual({ missing: [], unexpected: [] });
    const [src, tgt] = [ids([[4, 5]]), ids([[1, 2]])] as const;
    expect(numbers(run(short.eval(), src, tgt))).toEqual(numbers(run(long.eval(), src, tgt)));
  });

  it('repeats its dropout with the seed', () => {
    const model = makeModel(11, small);
    const output = () => numbers(run(model, ids([[4, 5]]), ids([[1, 2]])));
    manualSeed(1);
    const first = output();
    expect(output()).not.toEqual(first);
    manualSeed(1);
    expect(output()).toEqual(first);
  });

  it('clones into a model of its own, config included', () => {
    const model = makeModel(11, small).eval();
    const copy = model.clone();
    const [src, tgt] = [ids([[4, 5]]), ids([[1, 2]])] as const;
    expect(numbers(run(copy, src, tgt))).toEqual(numbers(run(model, src, tgt)));
    expect(copy.config).toEqual(model.config);
    noGrad(() => {
      for (const parameter of copy.parameters()) parameter.zero_();
    });
    expect(numbers(run(model, src, tgt)).some((value) => value !== 0)).toBe(true);
  });

  it('runs in float64, float16 and bfloat16', () => {
    const model = makeModel(11, small).eval();
    const [src, tgt] = [ids([[4, 5, 0]]), ids([[1, 2]])] as const;
    const expected = run(model, src, tgt).double();
    for (const [dtype, tolerance] of [
      ['float64', 1e-5],
      ['float16', 0.03],
      ['bfloat16', 0.2],
    ] as const) {
      const output = run(model.clone().to({ dtype }), src, tgt);
      expect(output.dtype).toBe(dtype);
      expect(largestDifference(output.double(), expected)).toBeLessThan(tolerance);
    }
  });

  it('leaves only its result behind', () => {
    const model = makeModel(11, small);
    const [src, tgt] = [ids([[4, 5]]), ids([[1, 2]])] as const;
    const before = memory().tensors;
    tidy(() => void run(model, src, tgt));
    noGrad(() => model.forward(src, tgt, null, null)).dispose();
    expect(memory().tensors).toBe(before);
  });

  it('takes attention and feed-forward modules of other kinds', () => {
    const model = makeModel(11, small);
    const layer = model.encoder.layers.at(0);
    const own = new EncoderLayer(8, new MultiHeadedAttention(4, 8), layer.feedForward, {
      dropout: 0,
    });
    expect(own.forward(ones([1, 2, 8]), null).shape).toEqual([1, 2, 8]);
    expect(
      () => new EncoderLayer(8, layer.selfAttn, layer.feedForward, { drop: 1 } as object),
    ).toThrow(TypeError);
  });
});
