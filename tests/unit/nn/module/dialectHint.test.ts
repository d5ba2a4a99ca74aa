import { describe, expect, it } from 'vitest';
import { LayerNorm, makeModel, seed000, seed002, SublayerConnection } from 'torchformer';
import type { Module, NormOptions } from 'torchformer';
import { dialectOf, normHint } from '../../../../dist/nn/module/dialectHint.js';

function keysOf(module: Module): string[] {
  return [...module.stateDict().keys()];
}

describe('the dialect that keys are in', () => {
  it.each([
    ['LayerNorm', new seed000.LayerNorm(4)],
    ['SubLayerConnection', new seed000.SubLayerConnection(4)],
    ['FeedForward', new seed000.FeedForward(4, 8)],
    ['MultiHeadAttention', new seed000.MultiHeadAttention(4, 2)],
  ])('tells seed 000 by its %s', (_, module) => {
    expect(dialectOf(keysOf(module))).toBe('seed 000');
  });

  it('tells seed 001 by a model', () => {
    const model = makeModel(11, { N: 1, dModel: 4, dFf: 8, h: 2 });
    expect(dialectOf(keysOf(model))).toBe('seed 001');
    expect(dialectOf(keysOf(model).map((key) => `module.${key}`))).toBe('seed 001');
  });

  it.each([
    ['MultiHead', new seed002.MultiHead()],
    ['PositionEmbedding', new seed002.PositionEmbedding()],
    ['FullyConnectedOutput', new seed002.FullyConnectedOutput()],
  ])('tells seed 002 by its %s', (_, module) => {
    expect(dialectOf(keysOf(module))).toBe('seed 002');
  });

  it('tells torch.nn.Transformer', () => {
    const layer = 'decoder.layers.0.';
    const keys = [
      ...['self_attn', 'multihead_attn'].flatMap((name) =>
        ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias'].map(
          (part) => `${layer}${name}.${part}`,
        ),
      ),
      ...['linear1', 'linear2', 'norm1', 'norm2', 'norm3'].map((part) => `${layer}${part}.weight`),
      'decoder.norm.weight',
    ];
    expect(dialectOf(keys)).toBe('torch.nn.Transformer');
  });

  it.each([
    [
      'Marian',
      [
        'model.shared.weight',
        'model.encoder.embed_tokens.weight',
        'model.encoder.embed_positions.weight',
        ...['k_proj', 'v_proj', 'q_proj', 'out_proj'].map(
          (part) => `model.encoder.layers.0.self_attn.${part}.weight`,
        ),
        'model.encoder.layers.0.self_attn_layer_norm.weight',
        'model.encoder.layers.0.fc1.weight',
        'model.encoder.layers.0.final_layer_norm.weight',
      ],
    ],
    [
      'BERT',
      [
        'bert.embeddings.word_embeddings.weight',
        'bert.encoder.layer.0.attention.self.query.weight',
        'bert.encoder.layer.0.attention.output.LayerNorm.weight',
        'bert.encoder.layer.0.intermediate.dense.weight',
      ],
    ],
    ['T5', ['shared.weight', 'encoder.block.0.layer.0.SelfAttention.q.weight']],
    ['GPT-2', ['wte.weight', 'wpe.weight', 'h.0.ln_1.weight', 'h.0.attn.c_attn.weight']],
    ['Llama', ['model.layers.0.self_attn.q_proj.weight', 'model.layers.0.mlp.up_proj.weight']],
  ])('tells %s of Hugging Face', (_, keys) => {
    expect(dialectOf(keys)).toBe('Hugging Face transformers');
  });

  it('says nothing about keys that could be anyone’s, or equally two', () => {
    expect(dialectOf([])).toBeNull();
    expect(dialectOf(['0.weight', 'norm.bias'])).toBeNull();
    expect(dialectOf(['norm.k', 'norm.a_2'])).toBeNull();
  });

  it('is named by the error of loading weights of another dialect', () => {
    const state = new seed002.MultiHead({ dModel: 4, h: 2 }).stateDict();
    const target = new seed000.MultiHeadAttention(4, 2);
    expect(() => target.loadStateDict(state)).toThrow(/seed 002/);
  });
});

// Norms of other names were among the missing and unexpected keys, and nothing told the way out.
describe('norms of other names', () => {
  const size = { N: 1, dModel: 4, dFf: 8, h: 2 };
  const variants = [
    { names: 'a_2/b_2', norm: undefined, option: 'no option norm' },
    { names: 'k/b', norm: seed000.norm, option: '{ norm: seed000.norm }' },
    { names: 'weight/bias', norm: seed002.norm, option: '{ norm: seed002.norm }' },
  ] as const;
  const make = (norm?: NormOptions) => makeModel(11, { ...size, ...(norm && { norm }) });
  const pairs = variants.flatMap((here) =>
    variants.flatMap((there) => (here === there ? [] : [[here.names, there.names, here, there]])),
  ) as [string, string, (typeof variants)[number], (typeof variants)[number]][];

  it.each(pairs)('into a model with %s, those with %s are named with the way out', (...rest) => {
    const [, , here, there] = rest;
    const state = make(there.norm).stateDict();
    const target = make(here.norm);
    const [scale, shift] = there.names.split('/');
    const load = () => target.loadStateDict(state);
    expect(load).toThrow(`the norms are named ${scale}, ${shift} in the state dict`);
    expect(load).toThrow(`and ${here.names.replace('/', ', ')} in the module`);
    expect(load).toThrow(`create the model with ${there.option}`);
    expect(load).toThrow(`{ norm: { names: '${there.names}' } }`);
    // The way out is one.
    expect(make(there.norm).loadStateDict(state).missing).toEqual([]);
    make({ names: there.names }).loadStateDict(state);
  });

  it('are told behind a prefix, from a norm alone, and from another class', () => {
    const state = make(seed002.norm).stateDict({ prefix: 'module.' });
    expect(() => make().loadStateDict(state)).toThrow(
      /stripPrefix[^]*norms are named weight, bias/,
    );
    const pytorch = new LayerNorm(4, { names: { scale: 'weight', shift: 'bias' } });
    expect(() => new LayerNorm(4).loadStateDict(pytorch.stateDict())).toThrow(
      /LayerNorm: \{ names: \{ scale: 'weight', shift: 'bias' \} \}/,
    );
    expect(() =>
      new SublayerConnection(4).loadStateDict(new seed000.SubLayerConnection(4).stateDict()),
    ).toThrow(/the norms are named k, b/);
  });

  it('are not seen in other weights and biases', () => {
    expect(normHint(['norm.a_2', 'norm.b_2'], ['proj.weight', 'proj.bias'])).toBeNull();
    expect(normHint(['proj.weight', 'proj.bias'], ['proj.w'])).toBeNull();
    expect(normHint(['norm.a_2'], ['norm.weight'])).toBeNull();
    expect(normHint([], [])).toBeNull();
  });
});
