import { beforeEach, describe, expect, it } from 'vitest';
import {
  attentionMaps,
  clones,
  EncoderLayer,
  Linear,
  makeModel,
  manualSeed,
  memory,
  Module,
  MultiHeadedAttention,
  paddingMask,
  randn,
  targetMask,
  tensor,
  tidy,
} from 'torchformer';
import type { Tensor, Transformer } from 'torchformer';
import { largestDifference, numbers } from '../../../support/numbers.js';

const small = { N: 2, dModel: 8, dFf: 8, h: 2 };

function batch() {
  const src = tensor([
    [4n, 5n, 6n],
    [7n, 0n, 0n],
  ]);
  const tgt = tensor([
    [1n, 5n],
    [1n, 0n],
  ]);
  return { src, tgt, srcMask: paddingMask(src, 0), tgtMask: targetMask(tgt, 0) };
}

beforeEach(() => manualSeed(4));

describe('attentionMaps', () => {
  it('has the weights of every layer, [B, h, Sq, Sk]', () => {
    const maps = attentionMaps(makeModel(9, small), batch());
    const shapes = (list: readonly Tensor[]) => list.map(({ shape }) => shape);
    expect(shapes(maps.encoder)).toEqual(Array(2).fill([2, 2, 3, 3]));
    expect(shapes(maps.decoder)).toEqual(Array(2).fill([2, 2, 2, 2]));
    expect(shapes(maps.source)).toEqual(Array(2).fill([2, 2, 2, 3]));
    for (const map of Object.values(maps).flat() as Tensor[]) {
      for (const sum of numbers(map.sum(-1))) expect(sum).toBeCloseTo(1, 5);
      expect(map.requiresGrad).toBe(false);
    }
  });

  it('is zero where a mask blocks', () => {
    const { encoder, decoder, source } = attentionMaps(makeModel(9, small), batch());
    for (const map of [...encoder, ...source]) {
      expect(numbers(map.select(0, 1).narrow(-1, 1, 2)).every((weight) => weight === 0)).toBe(true);
    }
    for (const map of decoder)
      expect(numbers(map.select(2, 0).select(-1, 1))).toEqual([0, 0, 0, 0]);
  });

  it('is what the attention of a layer computes', () => {
    const model = makeModel(9, small).eval();
    const given = batch();
    const { encoder } = attentionMaps(model, given);
    const layer = model.encoder.layers.at(0);
    const attn = layer.selfAttn as MultiHeadedAttention;
    attn.keepAttention = true;
    layer.forward(model.srcEmbed.forward(given.src), given.srcMask);
    expect(numbers(encoder[0] as Tensor)).toEqual(numbers(attn.attn as Tensor));
  });

  it('has no dropout and leaves modes, weights kept before and memory as they were', () => {
    const model = makeModel(9, { ...small, dropout: 0.5, attentionDropout: 0.5 }).train();
    model.decoder.eval();
    const first = model.encoder.layers.at(0).selfAttn as MultiHeadedAttention;
    first.keepAttention = true;
    const given = batch();
    tidy(() => void model.encode(given.src, given.srcMask));
    const kept = first.attn;
    const before = memory().tensors;
    tidy(() => {
      const once = attentionMaps(model, given);
      const again = attentionMaps(model, given);
      expect(largestDifference(once.source[1] as Tensor, again.source[1] as Tensor)).toBe(0);
    });
    expect(memory().tensors).toBe(before);
    expect([model.training, model.encoder.training, model.decoder.training]).toEqual([
      true,
      true,
      false,
    ]);
    expect(first.attn).toBe(kept);
    expect(first.keepAttention).toBe(true);
    const second = model.encoder.layers.at(1).selfAttn as MultiHeadedAttention;
    expect([second.attn, second.keepAttention]).toEqual([null, false]);
  });

  it('leaves the model as it was after a failure, too', () => {
    const model = makeModel(9, small);
    const given = { ...batch(), src: tensor([[99n]]) };
    const before = memory().tensors;
    expect(() => attentionMaps(model, given)).toThrow(/the id 99/);
    expect(memory().tensors).toBe(before);
    expect(model.modules().every(({ training }) => training)).toBe(true);
    expect((model.encoder.layers.at(0).selfAttn as MultiHeadedAttention).keepAttention).toBe(false);
  });

  it('takes ids alone, without masks', () => {
    const { src, tgt } = batch();
    const { decoder } = attentionMaps(makeModel(9, small), { src, tgt });
    expect(numbers(decoder[0] as Tensor).every((weight) => weight > 0)).toBe(true);
  });

  it('refuses other models and other attention', () => {
    expect(() => attentionMaps(new Linear(2, 2) as unknown as Transformer, batch())).toThrow(
      /attentionMaps: model must be a Transformer, got a Linear/,
    );
    class Mean extends Module {
      override forward(query: Tensor): Tensor {
        return query.mean(1, { keepdim: true }).expand(...query.shape);
      }
    }
    const model = makeModel(9, small);
    model.encoder.layers.at(1).selfAttn = new Mean();
    expect(() => attentionMaps(model, batch())).toThrow(/MultiHeadedAttention, got a Mean/);
  });
});

describe('weights that MultiHeadedAttention keeps', () => {
  it('are not there unless asked for', () => {
    const module = new MultiHeadedAttention(2, 8);
    const input = randn([1, 3, 8]);
    module.forward(input, input, input);
    expect(module.attn).toBeNull();
  });

  it('are not cloned, and leave clones independent', () => {
    const module = new MultiHeadedAttention(2, 8, { keepAttention: true }).train();
    const input = randn([1, 3, 8], { requiresGrad: true });
    module.forward(input, input, input).sum().backward();
    const copies = clones(module, 3);
    for (const copy of copies) {
      expect(copy.attn).toBeNull();
      expect(copy.parameters().every(({ grad }) => grad === null)).toBe(true);
    }
    copies.at(0).linears.at(0).weight.detach().add_(1);
    expect(largestDifference(copies.at(1).linears.at(0).weight, module.linears.at(0).weight)).toBe(
      0,
    );
    expect(module.attn?.shape).toEqual([1, 2, 3, 3]);
  });

  it('are freed by the next forward, and with the model that holds the module', () => {
    const attn = new MultiHeadedAttention(2, 8, { keepAttention: true });
    const layer = new EncoderLayer(8, attn, new Linear(8, 8));
    const input = randn([1, 3, 8]);
    const run = () => tidy(() => void layer.forward(input, null));
    run();
    const before = memory().tensors;
    for (let count = 0; count < 5; count++) run();
    expect(memory().tensors).toBe(before);
    const parameters = layer.parameters().length;
    layer.dispose();
    expect(memory().tensors).toBe(before - parameters - 1);
    expect(attn.attn).toBeNull();
  });
});
