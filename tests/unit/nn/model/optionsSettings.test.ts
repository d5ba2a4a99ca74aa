import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  attention,
  Buffer,
  Embedding,
  Encoder,
  EncoderLayer,
  LayerNorm,
  LearnedPositions,
  Linear,
  loadModel,
  makeModel,
  memory,
  MultiHeadedAttention,
  ones,
  Parameter,
  PositionalEncoding,
  PositionwiseFeedForward,
  RMSNorm,
  RotaryPositions,
  saveModel,
  seed000,
  seed002,
  SublayerConnection,
  zeros,
} from 'torchformer';
import type { ModelOptions } from 'torchformer';
import { ids, logProbabilities, smallModel } from '../../../support/modelOptionSets.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-settings-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('settings', () => {
  const small: ModelOptions = { N: 1, dModel: 8, dFf: 8, h: 2 };

  it('have a final norm by default only where the last layer does not end with one', () => {
    expect(makeModel(9, { ...small, order: 'post' }).config?.finalNorm).toBe(false);
    expect(makeModel(9, { ...small, order: 'post' }).encoder.norm).toBeNull();
    expect(makeModel(9, small).encoder.norm).not.toBeNull();
  });

  it('name one vocabulary size when both are equal', () => {
    expect(makeModel({ src: 9, tgt: 9 }, small).config?.vocabSize).toBe(9);
    const { config, generator } = makeModel({ src: 9, tgt: 12 }, small);
    expect(config?.vocabSize).toEqual({ src: 9, tgt: 12 });
    expect(generator.proj.outFeatures).toBe(12);
  });

  it('grow with tables that follow from a formula, not with learned ones', () => {
    for (const positions of ['paired', 'perColumn', 'rotary', 'none'] as const) {
      const model = makeModel(9, { ...small, positions, maxLen: 3 }).eval();
      const [src, tgt] = [ids([[1, 2, 3, 4, 5]]), ids([[1, 2, 3, 4]])];
      if (positions !== 'none') {
        expect(() => logProbabilities(model, src, tgt)).toThrow(/5 positions, but the table has 3/);
      }
      expect(model.growPositions(5).config?.maxLen).toBe(5);
      expect(logProbabilities(model, src, tgt).shape).toEqual([1, 4, 9]);
    }
    const learned = makeModel(9, { ...small, positions: 'learned', maxLen: 3 });
    expect(() => learned.growPositions(5)).toThrow(/3 learned positions .* untrained/);
    expect(learned.config?.maxLen).toBe(3);
    expect(learned.growPositions(2).config?.maxLen).toBe(3);
  });

  it.each<[unknown, unknown, RegExp]>([
    [9, { norm: { kind: 'batch' } }, /norm\.kind must be 'layer' or 'rms', got the string "batch"/],
    [9, { norm: 'rms' }, /norm: options must be an object, got the string "rms"/],
    [9, { norm: { kind: 'rms', std: 'sample' } }, /norm\.std requires norm\.kind 'layer'/],
    [9, { norm: { eps: 0 } }, /norm\.eps must be a finite number above 0, got 0/],
    [
      9,
      { norm: { names: 'gamma/beta' } },
      /norm\.names must be 'a_2\/b_2', 'k\/b' or 'weight\/bias'/,
    ],
    [9, { norm: { deviation: 'sample' } }, /unknown option "deviation"; valid options: eps, epsPl/],
    [9, { norm: { std: 'sample' }, dModel: 1, h: 1 }, /dModel must be at least 2/],
    [9, { order: 'Post' }, /order must be 'pre' or 'post', got the string "Post"/],
    [9, { finalNorm: 1 }, /finalNorm must be true or false/],
    [
      9,
      { positions: 'sinusoidal' },
      /positions must be 'paired', 'perColumn', 'learned', 'rotary' or/,
    ],
    [9, { positions: 'rotary', dModel: 6, h: 2 }, /must be even, got 6 \/ 2 = 3/],
    [9, { activation: 'silu' }, /activation must be 'relu', 'gelu' or 'swiglu'/],
    [9, { tie: true }, /tie must be 'none', 'src-tgt', 'tgt-generator' or 'all', got true/],
    [9, { bias: 'no' }, /bias must be true or false/],
    [
      9,
      { bias: { norm: false } },
      /unknown option "norm"; valid options: attention, feedForward, g/,
    ],
    [9, { bias: { attention: 0 } }, /bias\.attention must be true or false/],
    [9, { emptyRows: 'nan' }, /emptyRows must be 'uniform' or 'zero'/],
    [{ src: 9 }, {}, /vocabSize\.tgt must be an integer, got undefined/],
    [{ src: 0, tgt: 9 }, {}, /vocabSize\.src must be an integer at least 1, got 0/],
    [{ source: 9, target: 9 }, {}, /unknown option "source"; valid options: src, tgt/],
    ['9', {}, /vocabSize must be an integer, got the string "9"/],
  ])('refuse %j with %j', (vocabSize, options, message) => {
    const before = memory().tensors;
    const make = () => makeModel(vocabSize as number, { ...small, ...(options as object) });
    expect(make).toThrow(message);
    expect(make).toThrow(/^makeModel/);
    expect(memory().tensors).toBe(before);
  });
});

/** Options of each kind but those that take null as a value of their own. */
const optionsThatMayNotBeNull: [string, (options: object) => unknown, string][] = [
  [
    'makeModel',
    (options) => makeModel(5, options),
    'N dModel dFf h dropout attentionDropout maxLen norm order finalNorm positions activation tie bias emptyRows',
  ],
  ['makeModel bias', (bias) => makeModel(5, { bias }), 'attention feedForward generator'],
  ['makeModel norm', (norm) => makeModel(5, { norm }), 'kind std eps epsPlace names'],
  [
    'attention',
    (options) => attention(ones([1, 1, 1]), ones([1, 1, 1]), ones([1, 1, 1]), options),
    'dropout training emptyRows needWeights',
  ],
  ['LayerNorm', (options) => new LayerNorm(2, options), 'eps std epsPlace names'],
  ['RMSNorm', (options) => new RMSNorm(2, options), 'eps'],
  ['Linear', (options) => new Linear(2, 2, options), 'bias'],
  ['LearnedPositions', (options) => new LearnedPositions(2, options), 'dropout maxLen'],
  ['PositionalEncoding', (options) => new PositionalEncoding(2, options), 'dropout maxLen formula'],
  ['RotaryPositions', (options) => new RotaryPositions(2, options), 'maxLen'],
  [
    'PositionwiseFeedForward',
    (options) => new PositionwiseFeedForward(2, 2, options),
    'dropout activation bias',
  ],
  [
    'MultiHeadedAttention',
    (options) => new MultiHeadedAttention(1, 2, options),
    'dropout emptyRows keepAttention bias rotary',
  ],
  ['SublayerConnection', (options) => new SublayerConnection(2, options), 'dropout order norm'],
  [
    'Encoder',
    (options) => {
      const parts = [new MultiHeadedAttention(1, 2), new PositionwiseFeedForward(2, 2)] as const;
      return new Encoder(new EncoderLayer(2, ...parts), 1, options);
    },
    'finalNorm',
  ],
  ['Parameter', (options) => new Parameter(zeros([1]), options), 'requiresGrad'],
  ['Buffer', (options) => new Buffer(zeros([1]), options), 'persistent'],
  ['stateDict', (options) => new Embedding(1, 1).stateDict(options), 'prefix keepVars'],
  [
    'namedModules',
    (options) => new Embedding(1, 1).namedModules(options),
    'prefix removeDuplicate',
  ],
  [
    'namedParameters',
    (options) => new Embedding(1, 1).namedParameters(options),
    'prefix recurse removeDuplicate',
  ],
  ['seed000.LayerNorm', (options) => new seed000.LayerNorm(2, options), 'eps'],
  [
    'seed000.SubLayerConnection',
    (options) => new seed000.SubLayerConnection(2, options),
    'dropout order',
  ],
  ['seed000.FeedForward', (options) => new seed000.FeedForward(2, 2, options), 'dropout'],
  [
    'seed000.MultiHeadAttention',
    (options) => new seed000.MultiHeadAttention(2, 1, options),
    'dropout emptyRows keepAttention',
  ],
  ['seed002.MultiHead', (options) => new seed002.MultiHead(options), 'dModel h dropout emptyRows'],
  [
    'seed002.PositionEmbedding',
    (options) => new seed002.PositionEmbedding(options),
    'vocabSize dModel maxLen',
  ],
  [
    'seed002.FullyConnectedOutput',
    (options) => new seed002.FullyConnectedOutput(options),
    'dModel dFf dropout',
  ],
];

describe.each(optionsThatMayNotBeNull)('null in the options of %s', (_owner, make, names) => {
  it.each(names.split(' '))('is refused for %s, not taken as the default', (name) => {
    expect(() => make({ [name]: null })).toThrow(TypeError);
    expect(() => make({ [name]: null })).toThrow(/ must be .*, got null(;|$)/);
    expect(() => make({ [name]: undefined })).not.toThrow();
  });
});

describe('config.json', () => {
  it("of an older version, without the later options, is seed 001's model", async () => {
    const folder = join(root, 'older');
    const model = smallModel('the defaults');
    await saveModel(folder, model);
    const file = join(folder, 'config.json');
    const config = JSON.parse(readFileSync(file, 'utf8')) as { model: Record<string, unknown> };
    const early = ['vocabSize', 'N', 'dModel', 'dFf', 'h', 'dropout', 'attentionDropout', 'maxLen'];
    config.model = Object.fromEntries(early.map((name) => [name, config.model[name]]));
    writeFileSync(file, JSON.stringify(config));
    const loaded = await loadModel(folder);
    expect(loaded.config.model).toEqual(model.config);
    expect(loaded.model.config).toEqual(model.config);
  });

  it('keeps its attention dropout beside a dropout of 0, given or not', async () => {
    const folder = join(root, 'attentionDropout');
    await saveModel(folder, smallModel('the defaults'));
    const file = join(folder, 'config.json');
    const config = JSON.parse(readFileSync(file, 'utf8')) as { model: Record<string, unknown> };
    const loadedWith = async (attentionDropout?: number) => {
      writeFileSync(
        file,
        JSON.stringify({ ...config, model: { ...config.model, dropout: 0, attentionDropout } }),
      );
      return (await loadModel(folder)).config.model;
    };
    expect(await loadedWith(0.1)).toMatchObject({ dropout: 0, attentionDropout: 0.1 });
    expect(await loadedWith(0.2)).toMatchObject({ dropout: 0, attentionDropout: 0.2 });
    expect(await loadedWith()).toMatchObject({ dropout: 0, attentionDropout: 0.1 });
  });

  it('with other settings than the weights is an error that names both', async () => {
    const folder = join(root, 'edited');
    await saveModel(folder, smallModel('the defaults'));
    const file = join(folder, 'config.json');
    const text = readFileSync(file, 'utf8');
    const faultWith = async (edit: (model: Record<string, unknown>) => void) => {
      const config = JSON.parse(text) as { model: Record<string, unknown> };
      edit(config.model);
      writeFileSync(file, JSON.stringify(config));
      return loadModel(folder).then(
        () => 'loaded',
        (fault: unknown) => (fault as Error).message,
      );
    };
    expect(await faultWith((model) => (model['norm'] = { kind: 'rms' }))).toMatch(
      /missing: "encoder\.layers\.0\.sublayers\.0\.norm\.weight"/,
    );
    expect(await faultWith((model) => (model['positions'] = 'perColumn'))).toMatch(
      /another formula/,
    );
    expect(await faultWith((model) => (model['order'] = 'sandwich'))).toMatch(
      /config\.json: makeModel: order must be 'pre' or 'post'/,
    );
    expect(await faultWith((model) => (model['vocabSize'] = { src: 12, tgt: 13 }))).toMatch(
      /generator\.proj\.weight is \[12, 8\], but .* says vocabSize 13/,
    );
  });
});
