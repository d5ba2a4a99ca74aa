import { beforeEach, describe, expect, it } from 'vitest';
import { freeze, Linear, makeBatch, SGD, Trainer, unfreeze } from 'torchformer';
import type { Transformer, Module } from 'torchformer';
import { tinyModel, weightsOf } from '../../../support/tinyTranslation.js';

let model: Transformer;
beforeEach(() => {
  model = tinyModel(20, { N: 2 });
});

const trainable = (module: Module) =>
  module
    .namedParameters()
    .filter(([, { requiresGrad }]) => requiresGrad)
    .map(([name]) => name);

describe('freeze', () => {
  it('freezes the parameters whose names match, and returns the names', () => {
    const frozen = freeze(model, 'generator.*');
    expect(frozen).toEqual(['generator.proj.weight', 'generator.proj.bias']);
    expect(model.generator.proj.weight.requiresGrad).toBe(false);
    expect(trainable(model)).not.toContain('generator.proj.bias');
    expect(trainable(model)).toHaveLength(model.parameters().length - 2);
  });

  it('takes * for any characters, and regular expressions for parts of names', () => {
    const frozen = freeze(model, ['*.layers.0.self_attn.*.bias', /^src_embed/g]);
    expect(frozen).toContain('encoder.layers.0.self_attn.linears.3.bias');
    expect(frozen).toContain('src_embed.0.embedding.weight');
    expect(frozen).toHaveLength(9);
  });

  it('takes every other character of a pattern as itself', () => {
    expect(() => freeze(model, 'generator?proj+weight')).toThrow(RangeError);
  });

  it('takes a name as a whole: src_embed is not a parameter', () => {
    expect(() => freeze(model, 'src_embed')).toThrow(
      'freeze: pattern src_embed matches no parameter; names are such as src_embed.0.embedding.weight',
    );
  });

  it('names parameters that are like a misspelt one, and changes nothing', () => {
    const message =
      'freeze: pattern encoder.layer.* matches no parameter; names are such as ' +
      'encoder.layers.0.self_attn.linears.0.weight';
    expect(() => freeze(model, ['generator.*', 'encoder.layer.*'])).toThrow(message);
    expect(() => freeze(model, 'generator.proj.wieght')).toThrow('such as generator.proj.weight');
    expect(trainable(model)).toHaveLength(model.parameters().length);
  });

  it.each([[undefined], [[]], [''], [5]])('refuses %j as patterns', (patterns) => {
    expect(() => freeze(model, patterns as string)).toThrow(
      "freeze: pattern must be names such as 'encoder.*', or regular expressions, got",
    );
  });

  it('returns every name of a tied parameter, because it is frozen at all its places', () => {
    const tied = tinyModel(20, { tie: 'all' });
    expect(freeze(tied, 'generator.proj.weight')).toEqual([
      'src_embed.0.embedding.weight',
      'tgt_embed.0.embedding.weight',
      'generator.proj.weight',
    ]);
  });

  it('drops the gradient of the last step, so that no optimizer applies it again', () => {
    const layer = new Linear(2, 1);
    layer.weight.grad = layer.weight.detach().clone();
    freeze(layer, 'weight');
    expect(layer.weight.grad).toBeNull();
  });

  it('keeps the weights through training, of which the others change', async () => {
    freeze(model, ['encoder.*', 'src_embed.*']);
    const before = weightsOf(model);
    const batch = makeBatch([{ src: [1, 5, 2], tgt: [1, 6, 7, 2], row: 1 }], 0);
    const trainer = new Trainer(model, {
      specialIds: { pad: 0, bos: 1, eos: 2 },
      optimizer: new SGD(model.parameters(), { lr: 0.1 }),
      reporter: null,
    });
    await trainer.fit([batch], { epochs: 2 });
    const after = weightsOf(model);
    for (const [name, weight] of Object.entries(after)) {
      const isFrozen = /^(encoder|src_embed)/.test(name);
      if (isFrozen) expect(weight, name).toEqual(before[name]);
    }
    expect(after['generator.proj.weight']).not.toEqual(before['generator.proj.weight']);
  });
});

describe('unfreeze', () => {
  it('makes all parameters trainable again, or those that match', () => {
    freeze(model, '*');
    expect(trainable(model)).toEqual([]);
    unfreeze(model, 'decoder.norm.*');
    expect(trainable(model)).toEqual(['decoder.norm.a_2', 'decoder.norm.b_2']);
    unfreeze(model);
    expect(trainable(model)).toHaveLength(model.parameters().length);
  });
});
