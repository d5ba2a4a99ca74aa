import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  averageModels,
  listCheckpoints,
  memory,
  noGrad,
  saveModel,
  selectCheckpoints,
  Tokenizer,
  trainCharacters,
} from 'torchformer';
import type { ModelOptions, SelectCheckpointsOptions, Transformer } from 'torchformer';
import { tinyModel, weightsOf } from '../../support/tinyTranslation.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-average-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
const fresh = () => join(root, String(count++));

/** A model whose every weight is this number. */
function filled(value: number, options: ModelOptions = {}): Transformer {
  const model = tinyModel(20, options);
  noGrad(() => {
    for (const parameter of model.parameters()) parameter.fill_(value);
  });
  return model;
}

async function savedAs(value: number, options: ModelOptions = {}): Promise<string> {
  const folder = fresh();
  const model = filled(value, options);
  await saveModel(folder, model);
  model.dispose();
  return folder;
}

const values = (model: Transformer) => [
  ...new Set(Object.values(weightsOf(model)).flatMap((weight) => Array.from(weight, Number))),
];

describe('averageModels', () => {
  test('of folders: every weight is the mean of the weights of that name', async () => {
    const folders = [await savedAs(1), await savedAs(2), await savedAs(6)];
    const { model, folders: read } = await averageModels(folders);
    expect(values(model)).toEqual([3]);
    expect(read).toEqual(folders);
    expect(model.training).toBe(false);
    model.dispose();
  });

  test('of models in memory, which it leaves as they are', async () => {
    const models = [filled(1), filled(2)];
    const { model, tokenizer, config } = await averageModels(models);
    expect(values(model)).toEqual([1.5]);
    expect(models.map(values)).toEqual([[1], [2]]);
    expect([tokenizer, config]).toEqual([null, null]);
  });

  test('is exact in float64, where float32 loses what is small', async () => {
    const models = [filled(2 ** 24), filled(1), filled(1)];
    const exact = await averageModels(models);
    const rough = await averageModels(models, { accumulate: 'float32' });
    expect(values(exact.model)).toEqual([Math.fround((2 ** 24 + 2) / 3)]);
    expect(values(rough.model)).toEqual([Math.fround(2 ** 24 / 3)]);
  });

  test('averages a tied weight once, and keeps the tie', async () => {
    const folders = [await savedAs(1, { tie: 'all' }), await savedAs(4, { tie: 'all' })];
    const { model } = await averageModels(folders);
    expect(values(model)).toEqual([2.5]);
    expect(model.generator.proj.weight).toBe(model.getParameter('src_embed.0.embedding.weight'));
  });

  test('takes the best model of a run folder, its tokenizer and config', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(['ab'], { vocabSize: 262 }));
    const run = fresh();
    await saveModel(join(run, 'best'), tinyModel(tokenizer.vocabSize), {
      tokenizer,
      specialIds: { pad: 0, bos: 1, eos: 2 },
    });
    const average = await averageModels([run]);
    expect(average.folders).toEqual([join(run, 'best')]);
    expect(average.tokenizer?.vocabSize).toBe(tokenizer.vocabSize);
    expect(average.config?.specialIds).toEqual({ pad: 0, bos: 1, eos: 2 });
  });

  test('leaves no tensor but the model', async () => {
    const folders = [await savedAs(1), await savedAs(2)];
    const failing = [folders[0] as string, await savedAs(NaN)];
    const before = memory().tensors;
    (await averageModels(folders)).model.dispose();
    await expect(averageModels(failing)).rejects.toThrow('is not finite');
    expect(memory().tensors).toBe(before);
  });
});

describe('models that differ', () => {
  test.each<[ModelOptions, string]>([
    [{ dFf: 32 }, 'config.json: model.dFf (32, there 64)'],
    [{ norm: { eps: 1e-3 } }, 'config.json: model.norm.eps (0.001, there 0.000001)'],
    [{ tie: 'all' }, 'config.json: model.tie ("all", there "none")'],
  ])('%j', async (options, key) => {
    const [one, other] = [await savedAs(1), await savedAs(1, options)];
    await expect(averageModels([one, other])).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: `${other}: differs from ${one} in ${key}`,
    });
  });

  test('another dropout is no difference', async () => {
    const { model } = await averageModels([await savedAs(1), await savedAs(3, { dropout: 0.3 })]);
    expect(values(model)).toEqual([2]);
  });

  test('tokenizers, by the first key', async () => {
    const tokenizers = await Promise.all(
      ['ab', 'ac'].map(async (text) => Tokenizer.fromJson(await trainCharacters([text]))),
    );
    const folders: string[] = [];
    for (const tokenizer of tokenizers) {
      const folder = fresh();
      await saveModel(folder, tinyModel(tokenizer.vocabSize), { tokenizer });
      folders.push(folder);
    }
    await expect(averageModels(folders)).rejects.toThrow(/in tokenizer\.json: model\.vocab\..* \(/);
  });

  test('models in memory, by the first weight', async () => {
    await expect(averageModels([filled(1), filled(1, { dFf: 32 })])).rejects.toThrow(
      'averageModels: models[1] differs from models[0] in encoder.layers.0.feed_forward.w_1.weight',
    );
  });

  test('the same folder twice, which would count twice', async () => {
    const folder = await savedAs(1);
    await expect(averageModels([folder, folder])).rejects.toThrow('given twice');
  });

  test('a weight that is NaN is named, with its model', async () => {
    const [good, bad] = [await savedAs(1), await savedAs(NaN)];
    await expect(averageModels([good, bad])).rejects.toMatchObject({
      code: 'ERR_NON_FINITE',
      message: `averageModels: encoder.layers.0.self_attn.linears.0.weight of ${bad} is not finite`,
    });
  });

  test.each<[unknown, string]>([
    [[], 'models must have at least one model'],
    ['runs/a', 'models must be an array of model folders, or of models, got the string "runs/a"'],
    [[5], 'models[0] must be a folder or a model, got 5'],
    [['runs/a', 5], 'models must be all folders, or all models in memory'],
  ])('arguments: %j', async (models, message) => {
    await expect(averageModels(models as string[])).rejects.toThrow(`averageModels: ${message}`);
  });
});

describe('the models that a run keeps', () => {
  let run: string;
  beforeAll(async () => {
    run = fresh();
    const kept = [
      { step: 100, validationLoss: 3, bleu: 10, score: 10 },
      { step: 200, validationLoss: 1, bleu: 30, score: 30 },
      { step: 1000, validationLoss: 2, bleu: 35, score: 35 },
      { step: 1100, validationLoss: 1, bleu: null, score: null },
    ];
    for (const training of kept) {
      const name = `step-${String(training.step).padStart(8, '0')}`;
      await saveModel(join(run, 'checkpoints', name), tinyModel(20), { training });
    }
    // An unfinished save.
    mkdirSync(join(run, 'checkpoints', '.step-00001200.tmp'));
  });

  const steps = async (options: SelectCheckpointsOptions) =>
    (await selectCheckpoints(run, options)).map(({ step }) => step);

  test('are listed by their steps', async () => {
    const found = await listCheckpoints(run);
    expect(found.map(({ step }) => step)).toEqual([100, 200, 1000, 1100]);
    expect(found[0]).toEqual({
      folder: join(run, 'checkpoints', 'step-00000100'),
      step: 100,
      loss: 3,
      bleu: 10,
      chrf: null,
      score: 10,
    });
  });

  test('the last, or the best by the score of the run, the loss or BLEU', async () => {
    expect(await steps({ last: 2 })).toEqual([1000, 1100]);
    expect(await steps({ best: 2 })).toEqual([200, 1000]);
    // Steps 200 and 1100 have the same loss.
    expect(await steps({ best: 1, by: 'loss' })).toEqual([200]);
    expect(await steps({ best: 3, by: 'bleu' })).toEqual([100, 200, 1000]);
  });

  test('without scores, the best are those of the lowest loss', async () => {
    const other = fresh();
    for (const [step, validationLoss] of [
      [5, 2],
      [7, 1],
    ]) {
      const training = { step: step as number, validationLoss: validationLoss as number };
      await saveModel(join(other, 'checkpoints', String(step)), tinyModel(20), { training });
    }
    expect((await selectCheckpoints(other, { best: 1 }))[0]?.step).toBe(7);
  });

  test('too few are an error with both numbers', async () => {
    await expect(steps({ last: 5 })).rejects.toThrow(
      'it keeps only 4 models in checkpoints/, not 5',
    );
    await expect(steps({ best: 4, by: 'bleu' })).rejects.toThrow(
      'it keeps only 3 models with a validation bleu in checkpoints/, not 4',
    );
    await expect(steps({ best: 1, by: 'chrf' })).rejects.toThrow('it keeps only 0 models');
  });

  test('a folder without checkpoints says how a run keeps them', async () => {
    await expect(listCheckpoints(root)).rejects.toThrow(
      'has no checkpoints/; a run keeps models there with keepLast or keepBest',
    );
  });

  test('a damaged one is named', async () => {
    const broken = fresh();
    await saveModel(join(broken, 'checkpoints', '1'), tinyModel(20));
    const config = join(broken, 'checkpoints', '1', 'config.json');
    writeFileSync(config, readFileSync(config, 'utf8').slice(0, 20));
    await expect(listCheckpoints(broken)).rejects.toThrow(`${config}: not valid JSON`);
  });

  test.each<[unknown, string]>([
    [undefined, 'options with last or best are required'],
    [{}, 'pass either last or best'],
    [{ last: 1, best: 1 }, 'pass either last or best'],
    [{ last: 0 }, 'last must be an integer at least 1, got 0'],
    [{ last: 1, by: 'loss' }, 'by is for best'],
    [{ best: 1, by: 'ter' }, "by must be 'score', 'loss', 'bleu' or 'chrf'"],
  ])('options: %j', async (options, message) => {
    await expect(steps(options as SelectCheckpointsOptions)).rejects.toThrow(
      `selectCheckpoints: ${message}`,
    );
  });
});
