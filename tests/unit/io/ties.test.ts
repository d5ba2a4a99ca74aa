/** Models whose weights were tied, or untied, by hand. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  loadModel,
  memory,
  noGrad,
  Parameter,
  saveModel,
  tidy,
  type EncoderLayer,
  type LayerNorm,
  type Transformer,
} from 'torchformer';
import { tinyModel } from '../../support/tinyTranslation.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-ties-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const fresh = () => join(root, String(folders++));

const configOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>;

/** Under all names, those of tied parameters too. */
const valuesOf = (model: Transformer) =>
  tidy(() =>
    Object.fromEntries([...model.stateDict()].map(([name, value]) => [name, value.data()])),
  );

async function reloaded(model: Transformer, folder = fresh()): Promise<Transformer> {
  await saveModel(folder, model);
  const loaded = await loadModel(folder);
  expect(valuesOf(loaded.model)).toEqual(valuesOf(model));
  return loaded.model;
}

const embedding = (model: Transformer) => model.getParameter('tgt_embed.0.embedding.weight');

/** A parameter of its own with the same values. */
const separate = (parameter: Parameter) =>
  tidy(() => noGrad(() => new Parameter(parameter.detach().clone())));

const tied: [string, (model: Transformer) => void, [string, string]][] = [
  [
    'the generator to an embedding',
    (model) => (model.generator.proj.weight = embedding(model)),
    ['generator.proj.weight', 'tgt_embed.0.embedding.weight'],
  ],
  [
    'the generator to an embedding by another Parameter over its memory',
    (model) => (model.generator.proj.weight = new Parameter(embedding(model).detach())),
    ['generator.proj.weight', 'tgt_embed.0.embedding.weight'],
  ],
  [
    'two norms',
    ({ encoder, decoder }) =>
      ((decoder.norm as LayerNorm).scale = (encoder.norm as LayerNorm).scale),
    ['encoder.norm.a_2', 'decoder.norm.a_2'],
  ],
  [
    'two layers that are one module',
    ({ encoder: { layers } }) => (layers[1] = layers[0] as EncoderLayer),
    ['encoder.layers.0.feed_forward.w_1.weight', 'encoder.layers.1.feed_forward.w_1.weight'],
  ],
];

describe('tied by hand', () => {
  test.each(tied)('%s: tied again when loaded', async (_, tie, [one, other]) => {
    const model = tinyModel(20, { N: 2 });
    tie(model);
    const folder = fresh();
    const loaded = await reloaded(model, folder);
    expect(loaded.getParameter(one)).toBe(loaded.getParameter(other));
    // A model that older versions would load without the tie is one that they must refuse.
    expect(configOf(folder)['formatVersion']).toBe(2);
    const again = await reloaded(loaded);
    expect(again.getParameter(one)).toBe(again.getParameter(other));
    for (const used of [model, loaded, again]) used.dispose();
  });

  test('beside those of the option tie', async () => {
    const model = tinyModel(20, { tie: 'src-tgt' });
    model.generator.proj.weight = embedding(model);
    const loaded = await reloaded(model);
    expect(loaded.generator.proj.weight).toBe(embedding(loaded));
    expect(loaded.getParameter('src_embed.0.embedding.weight')).toBe(embedding(loaded));
    for (const used of [model, loaded]) used.dispose();
  });

  test('leaves no tensor behind', async () => {
    const model = tinyModel(20);
    model.generator.proj.weight.dispose();
    model.generator.proj.weight = embedding(model);
    const before = memory().tensors;
    (await reloaded(model)).dispose();
    expect(memory().tensors).toBe(before);
    model.dispose();
  });
});

describe('untied by hand', () => {
  test.each([
    ['with values of its own', (weight: Parameter) => noGrad(() => weight.mul_(2))],
    ['with equal values', () => undefined],
  ])('%s: a parameter of its own when loaded', async (_, change) => {
    const model = tinyModel(20, { tie: 'all' });
    const weight = separate(embedding(model));
    change(weight);
    model.generator.proj.weight = weight;
    const loaded = await reloaded(model);
    expect(loaded.generator.proj.weight).not.toBe(embedding(loaded));
    expect(loaded.getParameter('src_embed.0.embedding.weight')).toBe(embedding(loaded));
    for (const used of [model, loaded]) used.dispose();
  });
});

test.each(['none', 'src-tgt', 'tgt-generator', 'all'] as const)(
  'tie %s as makeModel makes it needs no note that older versions do not know',
  async (tie) => {
    const model = tinyModel(20, { tie });
    const folder = fresh();
    const loaded = await reloaded(model, folder);
    expect(loaded.parameters().length).toBe(model.parameters().length);
    expect(configOf(folder)).toMatchObject({ formatVersion: 1 });
    expect(Object.keys(configOf(folder))).not.toContain('ties');
    for (const used of [model, loaded]) used.dispose();
  },
);

test('parameters that share a part of their memory are refused', async () => {
  const model = tinyModel(20);
  model.generator.proj.bias = new Parameter(embedding(model).detach().view([-1]).narrow(0, 0, 20));
  await expect(saveModel(fresh(), model)).rejects.toThrow(
    'saveModel: parameters "tgt_embed.0.embedding.weight" and "generator.proj.bias" share part',
  );
  model.dispose();
});

describe('ties in a config that do not fit', () => {
  test.each<[string, unknown, string]>([
    ['no list', 5, 'ties must be lists of names or null, got 5'],
    ['no names', [[1, 2]], 'ties must be lists of names or null'],
    ['unknown', [['generator.proj.weight', 'x.y']], 'there is no parameter "x.y"'],
    [
      'of two shapes',
      [['generator.proj.weight', 'generator.proj.bias']],
      '"generator.proj.weight" [20, 32] and "generator.proj.bias" [20] differ in shape and cannot be tied',
    ],
    [
      'twice',
      [
        ['generator.proj.weight', 'src_embed.0.embedding.weight'],
        ['generator.proj.weight', 'tgt_embed.0.embedding.weight'],
      ],
      'parameter "generator.proj.weight" is tied twice',
    ],
  ])('%s', async (_, ties, message) => {
    const model = tinyModel(20);
    const folder = fresh();
    await saveModel(folder, model);
    const config = { ...configOf(folder), formatVersion: 2, ties };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    const before = memory().tensors;
    await expect(loadModel(folder)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining(`config.json: ${message}`) as string,
    });
    expect(memory().tensors).toBe(before);
    model.dispose();
  });
});
