/** Weights saved by the post's PyTorch classes, loaded by name. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  Dropout,
  makeModel,
  manualSeed,
  noGrad,
  paddingMask,
  targetMask,
  tensor,
  tidy,
} from 'torchformer';
import type { Tensor } from 'torchformer';
import { buildModel } from './build.js';
import { difference, get, index, readFixture } from './fixtures.js';
import type { Tensors } from './fixtures.js';

const { options, keys, parameters, dropouts, src, tgt, logProbabilities } = index.makeModel;
const build = () => buildModel((name) => options[name] as number);
const ids = (rows: number[][]): Tensor => tensor(rows, { dtype: 'int64' });

let saved: Tensors;
beforeAll(async () => {
  saved = await readFixture('makeModel');
});

describe("a state dict of seed 001's make_model", () => {
  it('has the keys, shapes and types of makeModel, in the same order', () => {
    const model = build();
    expect([...model.stateDict().keys()]).toEqual(keys);
    expect(model.namedParameters().map(([name]) => name)).toEqual(parameters);
    for (const [name, { shape, dtype }] of model.stateDict()) {
      const expected = get(saved, name);
      expect([name, dtype, ...shape]).toEqual([name, expected.dtype, ...expected.shape]);
    }
  });

  it('loads strictly and comes out again bit by bit', () => {
    const model = build();
    expect(model.loadStateDict(saved, { strict: true })).toEqual({ missing: [], unexpected: [] });
    for (const [name, value] of model.stateDict()) {
      expect(difference(value, get(saved, name)), name).toBe(0);
    }
  });

  it('gives the log-probabilities that PyTorch gets from it', () => {
    const model = build();
    model.loadStateDict(saved);
    model.eval();
    const actual = tidy(() =>
      noGrad(() => {
        const [source, target] = [ids(src), ids(tgt)];
        const masks = [paddingMask(source, 0), targetMask(target, 0)] as const;
        return model.generator.forward(model.forward(source, target, ...masks));
      }),
    );
    expect(difference(actual, tensor(logProbabilities))).toBeLessThanOrEqual(1e-5);
  });

  it('is refused when a key is missing, and no weight has changed then', () => {
    const model = build();
    const before = model.generator.proj.bias?.toArray();
    const incomplete = new Map(saved);
    incomplete.delete('decoder.layers.1.src_attn.linears.3.bias');
    expect(() => model.loadStateDict(incomplete)).toThrow(
      'decoder.layers.1.src_attn.linears.3.bias',
    );
    expect(model.generator.proj.bias?.toArray()).toEqual(before);
  });
});

describe('makeModel', () => {
  it('gets from one seed the initial weights that seed 001 gets in PyTorch', () => {
    manualSeed(20);
    for (const [name, value] of build().namedParameters()) {
      expect(difference(value, get(saved, name)), name).toBeLessThanOrEqual(1e-6);
    }
  });

  it('hands its dropout to positions, sublayers and feed-forward, and leaves attention at 0.1', () => {
    const found = build()
      .namedModules()
      .flatMap(([name, module]) => (module instanceof Dropout ? [[name, module.p]] : []));
    expect(Object.fromEntries(found)).toEqual(dropouts);
  });
});

describe('the table of positions', () => {
  let tables: Tensors;
  beforeAll(async () => {
    tables = await readFixture('positions');
  });
  const { maxLen, rowsOf512 } = index.positions;
  const table = (dModel: number): Tensor =>
    get(makeModel(5, { N: 1, dModel, dFf: 4, h: 1, maxLen }).stateDict(), 'src_embed.1.pe').squeeze(
      0,
    );

  const some = (table: Tensor): Tensor => table.indexSelect(0, ids([rowsOf512]).squeeze(0));

  it('is exact to float32 in each of its 200 rows', () => {
    const rounded = (key: string): Tensor => get(tables, key).float();
    expect(difference(table(8), rounded('d8/float64'))).toBeLessThanOrEqual(1e-7);
    expect(difference(some(table(512)), rounded('d512/float64'))).toBeLessThanOrEqual(1e-7);
  });

  it("equals seed 001's within 2e-5, since the post's own float32 table is 1.3e-5 off sines and cosines", () => {
    const [postSmall, post] = [get(tables, 'd8/float32'), get(tables, 'd512/float32')];
    expect(difference(table(8), postSmall)).toBeLessThanOrEqual(1e-5);
    expect(difference(some(table(512)), post)).toBeLessThanOrEqual(2e-5);
    // It rounds its angles to float32: up to 199 radians with a relative error of 6e-8.
    const postOff = difference(post, get(tables, 'd512/float64').float());
    expect(postOff).toBeGreaterThan(1.2e-5);
    expect(postOff).toBeLessThan(1.4e-5);
  });

  it('is exact to float64 after the model is cast to it', () => {
    const model = makeModel(5, { N: 1, dModel: 8, dFf: 4, h: 1, maxLen }).double();
    const actual = get(model.stateDict(), 'src_embed.1.pe').squeeze(0);
    expect(difference(actual, get(tables, 'd8/float64'))).toBeLessThanOrEqual(1e-13);
  });
});
