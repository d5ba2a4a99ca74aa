/** The classes of seeds 000 and 002 against PyTorch's, and the weights that they start from. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Dropout, manualSeed, seed000, seed002 } from 'torchformer';
import type { Module } from 'torchformer';
import { buildSeed000 } from './buildSeed000.js';
import { buildSeed002 } from './buildSeed002.js';
import { describeExact } from './compare.js';
import { difference, get, index, readFixture, under } from './fixtures.js';
import type { InitialState, Tensors } from './fixtures.js';

describeExact('seed000', buildSeed000);
describeExact('seed002', buildSeed002);

let saved: Tensors;
beforeAll(async () => {
  saved = await readFixture('initial');
});

/** In evaluation mode it has the class's own defaults. */
function build(given: InitialState): Module {
  const dialect = given.module.startsWith('seed000') ? buildSeed000 : buildSeed002;
  const { module } = dialect(given, 'evaluation');
  if (module === null) throw new Error(`${given.module} is not a class`);
  return module;
}

const { seed, modules } = index.initial;
describe.each(modules.map((given) => [given.module, given] as const))('%s', (name, given) => {
  it('has the keys, shapes and types of the post, in the same order', () => {
    const model = build(given);
    expect([...model.stateDict().keys()]).toEqual(given.keys);
    expect(model.namedParameters().map(([key]) => key)).toEqual(given.parameters);
    for (const [key, { shape, dtype }] of model.stateDict()) {
      const expected = get(saved, `${name}/${key}`);
      expect([key, dtype, ...shape]).toEqual([key, expected.dtype, ...expected.shape]);
    }
  });

  it('gets from one seed the initial weights that the post gets in PyTorch', () => {
    manualSeed(seed);
    for (const [key, value] of build(given).stateDict()) {
      expect(difference(value, get(saved, `${name}/${key}`)), key).toBeLessThanOrEqual(1e-7);
    }
  });

  it("loads a state dict saved by the post's class strictly, bit by bit", () => {
    const model = build(given);
    const state = under(saved, name);
    expect(model.loadStateDict(state, { strict: true })).toEqual({ missing: [], unexpected: [] });
    for (const [key, value] of model.namedParameters()) {
      expect(difference(value, get(state, key)), key).toBe(0);
    }
  });

  it("drops out as often as the post's class", () => {
    const found = build(given)
      .modules()
      .flatMap((module) => (module instanceof Dropout && module.p > 0 ? [module.p] : []));
    expect(found).toEqual(Object.values(given.dropouts));
  });
});

describe('seed 000 clones', () => {
  it('one Linear four times: the projections start equal', () => {
    const { linearList } = new seed000.MultiHeadAttention(8, 2);
    const [first, ...others] = [...linearList].map(({ weight }) => weight.toArray());
    expect(others).toEqual([first, first, first]);
  });
});

describe('the table of seed 002', () => {
  it('is that of the post to the last bit but one of float32', () => {
    const { pe } = new seed002.PositionEmbedding();
    expect(difference(pe, get(saved, 'seed002.PositionEmbedding/pe'))).toBeLessThanOrEqual(6e-8);
  });
});
