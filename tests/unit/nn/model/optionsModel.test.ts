import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Adam,
  crossEntropy,
  loadModel,
  makeModel,
  manualSeed,
  memory,
  noGrad,
  randn,
  saveModel,
  tidy,
} from 'torchformer';
import type { ModelConfig, Parameter, Tensor, Transformer } from 'torchformer';
import { largestDifference, numbers } from '../../../support/numbers.js';
import {
  ids,
  logProbabilities,
  optionSetNames,
  smallModel,
} from '../../../support/modelOptionSets.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-options-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// The third source is padding only.
const sources = [
  [4, 5, 6, 2],
  [7, 3, 0, 0],
  [0, 0, 0, 0],
];
const targets = [
  [1, 8, 4],
  [1, 6, 0],
  [1, 2, 3],
];

describe.each(optionSetNames)('a model with %s', (name) => {
  it('gives each row of a batch the result of the row alone', () => {
    const model = smallModel(name).eval();
    const together = logProbabilities(model, ids(sources), ids(targets));
    expect(numbers(together).every(Number.isFinite)).toBe(true);
    const alone = (src: number[], tgt: number[]) => {
      const tokens = (row: number[]) => row.filter((id) => id !== 0);
      return logProbabilities(model, ids([tokens(src)]), ids([tokens(tgt)]));
    };
    for (const row of [0, 1]) {
      const single = alone(sources[row] as number[], targets[row] as number[]);
      const length = single.shape[1] as number;
      const same = together.narrow(0, row, 1).narrow(1, 0, length);
      expect(largestDifference(same, single)).toBeLessThan(1e-5);
    }
  });

  it('has the gradients that finite differences give, in float64', () => {
    const model = smallModel(name, { N: 1 }).double();
    manualSeed(3);
    const [src, tgt] = [ids(sources), ids(targets)];
    const loss = () => {
      const scores = logProbabilities(model, src, tgt);
      return scores.mul(scores.sin()).sum();
    };
    loss().backward();
    const analytic = model.namedParameters().map(([key, parameter]) => {
      expect(parameter.grad, key).not.toBeNull();
      return parameter.grad as Tensor;
    });
    const largest = Math.max(1, ...analytic.flatMap((gradient) => numbers(gradient.abs().max())));
    const step = 1e-6;
    model.namedParameters().forEach(([key, parameter], index) => {
      const direction = randn([...parameter.shape], { dtype: 'float64' });
      const value = (shift: number) =>
        tidy(() => {
          move(parameter, direction, shift);
          const result = noGrad(loss).item();
          move(parameter, direction, -shift);
          return result;
        });
      const numeric = (value(step) - value(-step)) / (2 * step);
      const exact = (analytic[index] as Tensor).mul(direction).sum().item();
      expect(Math.abs(numeric - exact) / largest, key).toBeLessThan(1e-6);
    });
  });

  it('learns: its loss falls', () => {
    const model = smallModel(name, { N: 1 });
    const optimizer = new Adam(model.parameters(), { lr: 0.02 });
    const [src, tgt] = [ids(sources.slice(0, 2)), ids(targets.slice(0, 2))];
    const next = ids([
      [8, 4, 2],
      [6, 2, 0],
    ]);
    const step = () =>
      tidy(() => {
        const scores = logProbabilities(model, src, tgt);
        const loss = crossEntropy(scores.flatten(0, 1), next.flatten(), { ignoreIndex: 0 });
        model.zeroGrad();
        loss.backward();
        optimizer.step();
        return loss.item();
      });
    const first = step();
    let last = first;
    for (let count = 1; count < 25; count++) last = step();
    expect(last).toBeLessThan(first / 2);
  });

  it('comes back from a checkpoint with its settings, weights and results', async () => {
    const model = smallModel(name).eval();
    const folder = join(root, name.replaceAll(/\W+/g, '-'));
    await saveModel(folder, model);
    const { model: loaded, config } = await loadModel(folder);
    expect(config.model).toEqual(model.config);
    expect(loaded.config).toEqual(model.config);
    expect(loaded.namedParameters().map(([key]) => key)).toEqual(
      model.namedParameters().map(([key]) => key),
    );
    tidy(() => {
      const [src, tgt] = [ids(sources), ids(targets)];
      expect([...loaded.stateDict().keys()]).toEqual([...model.stateDict().keys()]);
      expect(numbers(logProbabilities(loaded, src, tgt))).toEqual(
        numbers(logProbabilities(model, src, tgt)),
      );
    });
    loaded.dispose();
  });

  it('has settings that are plain JSON and make it again', () => {
    const model = smallModel(name);
    const { vocabSize, ...options } = JSON.parse(JSON.stringify(model.config)) as ModelConfig;
    manualSeed(5);
    const again = makeModel(vocabSize, options);
    expect(again.config).toEqual(model.config);
    const [state, sameState] = [model.stateDict(), again.stateDict()];
    expect([...sameState.keys()]).toEqual([...state.keys()]);
    for (const [key, value] of state) {
      expect(numbers(sameState.get(key) as Tensor), key).toEqual(numbers(value));
    }
  });

  it('has a clone with the same results and memory of its own', () => {
    const model = smallModel(name).eval();
    const copy = model.clone();
    const [src, tgt] = [ids(sources), ids(targets)];
    const expected = numbers(logProbabilities(model, src, tgt));
    expect(copy.parameters()).toHaveLength(model.parameters().length);
    expect(numbers(logProbabilities(copy, src, tgt))).toEqual(expected);
    noGrad(() => {
      for (const parameter of copy.parameters()) parameter.zero_();
    });
    expect(numbers(logProbabilities(model, src, tgt))).toEqual(expected);
  });

  it('leaves nothing but itself behind', () => {
    const before = memory().tensors;
    const model = smallModel(name);
    const own = model.parameters().length + model.buffers().length;
    expect(memory().tensors - before).toBe(own);
    model.dispose();
    expect(memory().tensors).toBe(before);
  });
});

function move(parameter: Parameter, direction: Tensor, by: number): void {
  noGrad(() => void parameter.add_(direction.mul(by)));
}

describe('the state dict', () => {
  const keysOf = (name: string) => [...smallModel(name, { N: 1 }).stateDict().keys()];
  const defaults = keysOf('the defaults');
  const without = (pattern: RegExp) => defaults.filter((key) => !pattern.test(key));
  const renamed = (pairs: Record<string, string>) =>
    defaults.map((key) => key.replace(/[ab]_2$/, (parameter) => pairs[parameter] ?? parameter));

  it('names the parameters of each norm as its dialect does', () => {
    expect(keysOf('norm: sample deviation, eps added to it')).toEqual(
      renamed({ a_2: 'k', b_2: 'b' }),
    );
    expect(keysOf("norm: PyTorch's")).toEqual(renamed({ a_2: 'weight', b_2: 'bias' }));
    expect(keysOf('norm: rms')).toEqual(
      without(/b_2$/).map((key) => key.replace(/a_2$/, 'weight')),
    );
  });

  it('has no entry for what is not there', () => {
    expect(keysOf('order: post')).toEqual(without(/^(en|de)coder\.norm/));
    expect(keysOf('order: post, with a final norm')).toEqual(defaults);
    expect(keysOf('positions: none')).toEqual(without(/pe$/));
    expect(keysOf('positions: rotary')).toEqual(without(/pe$/));
    expect(keysOf('bias: false')).toEqual(without(/\.bias$/));
    expect(keysOf('bias: in feed-forward only')).toEqual(without(/(linears\.\d|proj)\.bias$/));
  });

  it('has the positions under pe, learned or not', () => {
    expect(keysOf('positions: learned').sort()).toEqual([...defaults].sort());
    expect(keysOf('positions: perColumn')).toEqual(defaults);
  });

  it("has w_3 for SwiGLU's gate", () => {
    const gates = keysOf('activation: swiglu').filter((key) => !defaults.includes(key));
    expect(gates).toEqual(
      ['encoder', 'decoder'].flatMap((stack) => [
        `${stack}.layers.0.feed_forward.w_3.weight`,
        `${stack}.layers.0.feed_forward.w_3.bias`,
      ]),
    );
  });

  it('refuses positions that were made by another formula, and lengths that were not learned', () => {
    const [paired, perColumn, learned] = [
      'the defaults',
      'positions: perColumn',
      'positions: learned',
    ].map((name) => smallModel(name)) as [Transformer, Transformer, Transformer];
    expect(() => perColumn.loadStateDict(paired.stateDict())).toThrow(/another formula/);
    expect(() => paired.loadStateDict(learned.stateDict())).toThrow(/another formula/);
    const longer = smallModel('positions: learned', { maxLen: 11 });
    expect(() => learned.loadStateDict(longer.stateDict())).toThrow(
      /src_embed\.1\.pe: \[1, 10, 8\] in the module, \[1, 11, 8\] in the state dict/,
    );
  });
});

describe('tied weights', () => {
  const places = [
    'src_embed.0.embedding.weight',
    'tgt_embed.0.embedding.weight',
    'generator.proj.weight',
  ];
  const groups: Record<string, number[]> = {
    'the defaults': [0, 1, 2],
    'tie: src-tgt': [0, 0, 2],
    'tie: tgt-generator': [0, 1, 1],
    'tie: all': [0, 0, 0],
  };

  it.each(Object.entries(groups))(
    '%s: each has all its names, and is one Parameter',
    (name, group) => {
      const model = smallModel(name);
      const state = model.stateDict();
      const values = places.map((place) => numbers(state.get(place) as Tensor));
      group.forEach((first, place) => expect(values[place]).toEqual(values[first]));
      const different = new Set(group);
      expect(new Set(values.map(String)).size).toBe(different.size);
      const names = model.namedParameters().map(([key]) => key);
      expect(places.filter((place) => names.includes(place))).toEqual(
        places.filter((_, place) => different.has(place)),
      );
      expect(model.parameterCount()).toBe(
        smallModel('the defaults').parameterCount() - (3 - different.size) * 12 * 8,
      );
    },
  );

  it('are drawn once, as the first of them is drawn alone', () => {
    const model = smallModel('tie: all');
    const bound = Math.sqrt(6 / (12 + 8));
    const values = numbers(model.generator.proj.weight).map(Math.abs);
    expect(Math.max(...values)).toBeLessThanOrEqual(bound);
    expect(Math.max(...values)).toBeGreaterThan(0.8 * bound);
    expect(numbers(model.generator.proj.weight)).toEqual(
      numbers(
        smallModel('the defaults')
          .stateDict()
          .get(places[0] as string) as Tensor,
      ),
    );
  });

  it('are scaled by √dModel as embeddings and not as scores', () => {
    const model = smallModel('tie: all', { positions: 'none' }).eval();
    const weight = model.generator.proj.weight;
    const embedded = model.srcEmbed.forward(ids([[4]])).reshape(8);
    expect(largestDifference(embedded, weight.select(0, 4).mul(Math.sqrt(8)))).toBeLessThan(1e-6);
    const scores = model.generator.logits(embedded);
    const expected = weight.matmul(embedded).add(model.generator.proj.bias as Tensor);
    expect(largestDifference(scores, expected)).toBeLessThan(1e-5);
  });

  it('stay tied through to(), clone() and loadStateDict()', () => {
    const model = smallModel('tie: all').double();
    const copy = model.clone();
    copy.loadStateDict(model.stateDict());
    for (const { generator, srcEmbed } of [model, copy]) {
      noGrad(() => void generator.proj.weight.fill_(0.5));
      expect(srcEmbed.parameters()[0]).toBe(generator.proj.weight);
    }
    expect(copy.generator.proj.weight === model.generator.proj.weight).toBe(false);
  });

  it('need one vocabulary where source and target are tied', () => {
    for (const tie of ['src-tgt', 'all'] as const) {
      expect(() => makeModel({ src: 9, tgt: 12 }, { tie })).toThrow(
        new RangeError(
          `makeModel: tie '${tie}' requires one vocabulary for source and target, got sizes 9 and 12`,
        ),
      );
    }
  });
});
