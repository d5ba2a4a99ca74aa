/** Models whose modules are not those that `makeModel` makes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  Generator,
  Linear,
  loadModel,
  manualSeed,
  memory,
  Module,
  noGrad,
  PositionwiseFeedForward,
  saveModel,
  Sequential,
  tidy,
  Trainer,
  Transformer,
  Translator,
  type ModelOptions,
  type Tensor,
} from 'torchformer';
import {
  firstBatches,
  tinyModel,
  tinyTask,
  weightsOf,
  type TinyTask,
} from '../../support/tinyTranslation.js';

/** A gated feed-forward network. */
class Gated extends Module {
  gate = new Linear(32, 48);
  up = new Linear(32, 48);
  down = new Linear(48, 32);

  override forward(input: Tensor): Tensor {
    return tidy(() =>
      this.down.forward(this.gate.forward(input).sigmoid().mul(this.up.forward(input))),
    );
  }
}

/** Weights of the same names and shapes as the original's, another result. */
class Squared extends PositionwiseFeedForward {
  override forward(input: Tensor): Tensor {
    return tidy(() => this.w2.forward(this.w1.forward(input).relu().square()));
  }
}

let root: string;
let task: TinyTask;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-own-'));
  task = await tinyTask();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const emitWarning = vi.spyOn(process, 'emitWarning');
beforeEach(() => {
  emitWarning.mockReset().mockImplementation(() => undefined);
});
afterAll(() => emitWarning.mockRestore());

let folders = 0;
const fresh = () => join(root, String(folders++));

function modelWith(make: () => Module, options: ModelOptions = {}): Transformer {
  const model = tinyModel(task.tokenizer.vocabSize, options);
  manualSeed(folders);
  (model.encoder.layers[0] as { feedForward: Module }).feedForward = make();
  return model;
}

const gated = (options?: ModelOptions) => modelWith(() => new Gated(), options);

/** Makes the two differ, so that loading has something to do. */
function changed(model: Transformer): Transformer {
  noGrad(() => model.parameters().forEach((parameter) => parameter.mul_(1.5)));
  return model;
}

async function saved(model: Transformer): Promise<string> {
  const folder = fresh();
  const { tokenizer, specialIds } = task;
  await saveModel(folder, model, { tokenizer, specialIds });
  return folder;
}

describe('saving', () => {
  test('warns, once a model, and says how to load', async () => {
    const model = gated();
    await saved(model);
    await saved(model);
    expect(emitWarning).toHaveBeenCalledTimes(1);
    expect(emitWarning.mock.calls[0]?.[0]).toBe(
      'saveModel: "encoder.layers.0.feed_forward" differs from what makeModel creates. The weights ' +
        'are saved, but to load them, build the same model and pass it: loadModel(folder, { model })',
    );
    expect(emitWarning.mock.calls[0]?.[1]).toMatchObject({ code: 'TORCHFORMER_OWN_MODULES' });
    model.dispose();
  });

  test('by the Trainer warns too', async () => {
    const model = gated();
    const { specialIds } = task;
    const out = fresh();
    const trainer = new Trainer(model, { specialIds, out, reporter: null });
    await trainer.fit(firstBatches(task, 4, 4), { epochs: 1 });
    trainer.dispose();
    expect(emitWarning).toHaveBeenCalledTimes(1);
    const again = gated();
    const loaded = await loadModel(out, { model: again });
    expect(loaded.folder).toBe(join(out, 'last'));
    expect(weightsOf(again)).toEqual(weightsOf(model));
    for (const used of [model, again]) used.dispose();
  });

  const changes: [string, (model: Transformer) => void, string[]][] = [
    [
      'a class with weights of the same names',
      (model) => (model.decoder.layers[0]!.feedForward = new Squared(32, 64)),
      ['decoder.layers.0.feed_forward'],
    ],
    [
      'another setting',
      (model) =>
        (model.encoder.layers[0]!.feedForward = new PositionwiseFeedForward(32, 64, {
          activation: 'gelu',
        })),
      ['encoder.layers.0.feed_forward'],
    ],
    [
      'a generator of another size',
      (model) => (model.generator = new Generator(32, 90)),
      ['generator.proj'],
    ],
    [
      'a module too many',
      (model) => ((model.encoder as Module & { extra?: Module }).extra = new Linear(2, 2)),
      ['encoder.extra'],
    ],
    ['a module less', (model) => (model.encoder.norm = null), ['encoder.norm']],
    ['a parameter less', (model) => (model.generator.proj.bias = null), ['generator.proj']],
    [
      'a method of its own',
      (model) => (model.srcEmbed.forward = (ids: Tensor) => ids),
      ['src_embed'],
    ],
    [
      'a sequence in the place of a layer',
      (model) => (model.tgtEmbed = new Sequential(...(model.tgtEmbed as Sequential))),
      [],
    ],
  ];
  test.each(changes)('notes %s', async (_, change, expected) => {
    const model = tinyModel(task.tokenizer.vocabSize);
    change(model);
    const folder = fresh();
    await saveModel(folder, model);
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as object;
    expect({ ownModules: [], ...config }).toMatchObject({
      ownModules: expected,
      formatVersion: expected.length > 0 ? 2 : 1,
    });
    expect(emitWarning).toHaveBeenCalledTimes(expected.length);
    model.dispose();
  });

  test('of what makeModel makes, its clone, and what training and use change is as ever', async () => {
    const { vocabSize } = task.tokenizer;
    const options: ModelOptions = { positions: 'rotary', activation: 'swiglu', bias: false };
    const made = [tinyModel(vocabSize), tinyModel(vocabSize, options)];
    const model = made[0]!.clone().growPositions(50).double();
    for (const module of model.modules()) if ('p' in module) module.p = 0.3;
    for (const used of [...made, model]) {
      const folder = fresh();
      await saveModel(folder, used);
      const loaded = await loadModel(folder);
      expect(loaded.config.ownModules).toEqual([]);
      loaded.model.dispose();
      used.dispose();
    }
    expect(emitWarning).not.toHaveBeenCalled();
  });
});

describe('loading', () => {
  test('without a model is refused, also where the names of the weights would fit', async () => {
    for (const model of [gated(), modelWith(() => new Squared(32, 64))]) {
      const folder = await saved(model);
      const before = memory().tensors;
      for (const load of [loadModel, Translator.load.bind(Translator)]) {
        await expect(load(folder)).rejects.toMatchObject({
          code: 'ERR_CHECKPOINT',
          message:
            `${folder}/config.json: "encoder.layers.0.feed_forward" differs from what makeModel creates; ` +
            'build the model as it was when saved and pass it: loadModel(folder, { model })',
        });
      }
      expect(memory().tensors).toBe(before);
      model.dispose();
    }
  });

  test('with a model fills it, in its own dtype, and gives all the rest', async () => {
    const model = changed(gated());
    const folder = await saved(model);
    const again = gated().double();
    const loaded = await loadModel(folder, { model: again });
    expect(loaded.model).toBe(again);
    expect(again.training).toBe(false);
    expect(loaded.tokenizer?.vocabSize).toBe(task.tokenizer.vocabSize);
    expect(loaded.config.ownModules).toEqual(['encoder.layers.0.feed_forward']);
    expect(again.generator.proj.weight.dtype).toBe('float64');
    again.float();
    expect(weightsOf(again)).toEqual(weightsOf(model));
    for (const used of [model, again]) used.dispose();
  });

  test('a Translator with a model translates as the one that was saved', async () => {
    const model = changed(gated());
    const folder = await saved(model);
    const { tokenizer, specialIds } = task;
    const expected = await new Translator(model.eval(), { tokenizer, specialIds }).translate([
      'sixty nine',
      'twenty',
    ]);
    const translator = await Translator.load(folder, { model: gated() });
    expect(await translator.translate(['sixty nine', 'twenty'])).toEqual(expected);
    translator.dispose();
    model.dispose();
  });

  test('of what makeModel makes into a model with own modules is refused', async () => {
    const folder = await saved(tinyModel(task.tokenizer.vocabSize));
    const model = modelWith(() => new Squared(32, 64));
    await expect(loadModel(folder, { model })).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining(
        'in nothing, the given model in "encoder.layers.0.feed_forward"',
      ) as string,
    });
    model.dispose();
  });

  test('with a model works for what makeModel makes, too', async () => {
    const model = changed(tinyModel(20));
    const folder = fresh();
    await saveModel(folder, model);
    const again = tinyModel(20, { dropout: 0.2, maxLen: 40 });
    await loadModel(folder, { model: again });
    expect(weightsOf(again)).toEqual(weightsOf(model));
    for (const used of [model, again]) used.dispose();
  });

  test.each<[string, () => Transformer, string | RegExp]>([
    [
      'other weights',
      () => modelWith(() => new Squared(32, 64)),
      /model\.safetensors: loadStateDict: the state dict does not fit.*gate\.weight/s,
    ],
    [
      'none of its own modules',
      () => tinyModel(task.tokenizer.vocabSize),
      '/config.json: the saved model differs from what makeModel creates in ' +
        '"encoder.layers.0.feed_forward", the given model in nothing: replace the same modules',
    ],
    [
      'another order of norms',
      () => gated({ order: 'post', finalNorm: true }),
      '/config.json: the saved model has order "pre", the given model "post"',
    ],
    [
      'ties that the saved one has not',
      () => gated({ tie: 'tgt-generator' }),
      '/config.json: the saved model has no tied parameters, the given model tied ' +
        '"tgt_embed.0.embedding.weight" = "generator.proj.weight": tie them in the same way',
    ],
  ])('into a model with %s is refused, and it stays as it was', async (_, make, message) => {
    const model = changed(gated());
    const folder = await saved(model);
    const again = make();
    const before = weightsOf(again);
    await expect(loadModel(folder, { model: again })).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: (message instanceof RegExp
        ? expect.stringMatching(message)
        : expect.stringContaining(message)) as string,
    });
    await expect(Translator.load(folder, { model: again })).rejects.toThrow();
    expect(weightsOf(again)).toEqual(before);
    expect(again.training).toBe(true);
    for (const used of [model, again]) used.dispose();
  });

  test('into what is no model is refused', async () => {
    await expect(loadModel('folder', { model: null as never })).rejects.toThrow(
      /^loadModel: model must be a Transformer/,
    );
    await expect(Translator.load('folder', { model: {} as never })).rejects.toThrow(
      /^Translator\.load: model must be a Transformer/,
    );
  });
});

test('settings put on a model that makeModel did not make do not say what it is', async () => {
  const { encoder, decoder, srcEmbed, tgtEmbed, generator, config } = tinyModel(20);
  const own = new Transformer(encoder, decoder, srcEmbed, tgtEmbed, generator);
  own.config = config;
  const folder = fresh();
  await saveModel(folder, own);
  await expect(loadModel(folder)).rejects.toThrow(/the model itself differs from what makeModel/);
  own.dispose();
});

test('a model without settings cannot be trained into a folder', () => {
  const { encoder, decoder, srcEmbed, tgtEmbed, generator } = tinyModel(20);
  const own = new Transformer(encoder, decoder, srcEmbed, tgtEmbed, generator);
  const { specialIds } = task;
  expect(() => new Trainer(own, { specialIds, out: fresh(), reporter: null })).toThrow(
    /^Trainer: the model was not made by makeModel/,
  );
  own.dispose();
});
