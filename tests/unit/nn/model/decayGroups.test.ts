import { describe, expect, it } from 'vitest';
import {
  AdamW,
  decayGroups,
  makeModel,
  seed002,
  type Module,
  type ModelOptions,
} from 'torchformer';

const sizes = { N: 1, dModel: 4, dFf: 8, h: 2 } as const;

/** Names of the parameters in each group. */
function namesIn(model: Module, options: Parameters<typeof decayGroups>[1]) {
  const names = new Map(model.namedParameters().map(([name, parameter]) => [parameter, name]));
  return decayGroups(model, options).map(({ params }) => params.map((one) => names.get(one) ?? ''));
}

describe('decayGroups', () => {
  it('leaves biases and norms out, and puts every parameter in one group', () => {
    const model = makeModel(11, sizes);
    const [decayed, others] = namesIn(model, { weightDecay: 0.1 }) as [string[], string[]];
    expect(decayed).toContain('encoder.layers.0.self_attn.linears.0.weight');
    expect(decayed).toContain('src_embed.0.embedding.weight');
    expect(decayed).toContain('generator.proj.weight');
    expect(others).toContain('generator.proj.bias');
    expect(others).toContain('encoder.norm.a_2');
    expect([...decayed, ...others].sort()).toEqual(
      model
        .namedParameters()
        .map(([n]) => n)
        .sort(),
    );
    expect(decayGroups(model, { weightDecay: 0.1 }).map((group) => group.weightDecay)).toEqual([0.1, 0]); // prettier-ignore
  });

  it.each<[string, ModelOptions, string[]]>([
    ['of their own', {}, ['src_embed.0.embedding.weight', 'tgt_embed.0.embedding.weight']],
    ['with learned positions', { positions: 'learned' }, ['src_embed.1.pe', 'tgt_embed.1.pe']],
    ['tied to the generator', { tie: 'all' }, ['src_embed.0.embedding.weight']],
  ])('leaves embeddings %s out on request', (_, options, expected) => {
    const [decayed, others] = namesIn(makeModel(11, { ...sizes, ...options }), {
      weightDecay: 0.1,
      embeddings: false,
    }) as [string[], string[]];
    for (const name of expected) {
      expect(others).toContain(name);
      expect(decayed).not.toContain(name);
    }
  });

  it('serves as the parameters of an optimizer', () => {
    const optimizer = new AdamW(decayGroups(makeModel(11, sizes), { weightDecay: 0.05 }));
    expect(optimizer.paramGroups.map(({ weightDecay }) => weightDecay)).toEqual([0.05, 0]);
  });

  it('takes any module, and refuses what is none', () => {
    const groups = decayGroups(new seed002.FullyConnectedOutput(), { weightDecay: 1 });
    expect(groups.map(({ params }) => params.length)).toEqual([2, 4]);
    expect(() => decayGroups({} as Module, { weightDecay: 1 })).toThrow(/model/);
    expect(() => decayGroups(makeModel(5, sizes), { weightDecay: -1 })).toThrow(/weightDecay/);
  });
});
