/** Models and tokenizers of different sizes. */
import { beforeAll, describe, expect, test } from 'vitest';
import { noGrad, Trainer, Translator } from 'torchformer';
import { tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let size: number;
beforeAll(async () => {
  task = await tinyTask();
  size = task.tokenizer.vocabSize;
});

describe('Translator', () => {
  test('never writes an id that the tokenizer has no token for', async () => {
    const { tokenizer, specialIds } = task;
    const model = tinyModel(size + 8).eval();
    const bias = model.generator.proj.bias!;
    noGrad(() => bias.narrow(0, size, 8).fill_(50));
    const translator = new Translator(model, { tokenizer, specialIds });
    const outputs = await translator.translate(['sixty', 'twenty one']);
    noGrad(() => bias.narrow(0, size, 8).fill_(-Infinity));
    expect(outputs).toEqual(await translator.translate(['sixty', 'twenty one']));
    expect(outputs.join('')).not.toBe('');
    translator.dispose();
  });

  test.each(['src', 'tgt'] as const)(
    'refuses a model whose %s vocabulary is larger than the other when it is made',
    (side) => {
      const { tokenizer, specialIds } = task;
      const model = tinyModel({ src: size, tgt: size, [side]: size + 5 });
      expect(() => new Translator(model, { tokenizer, specialIds })).toThrow(RangeError);
      expect(() => new Translator(model, { tokenizer, specialIds })).toThrow(
        /^Translator: the model has a vocabulary of \d+ for the source and of \d+ for the target/,
      );
      model.dispose();
    },
  );

  test('refuses a tokenizer that is larger than the model', () => {
    const { tokenizer, specialIds } = task;
    const model = tinyModel(size - 1);
    expect(() => new Translator(model, { tokenizer, specialIds })).toThrow(
      `Translator: the tokenizer has ${size} ids, the model only ${size - 1}`,
    );
    model.dispose();
  });
});

describe('Trainer', () => {
  test.each(['src', 'tgt'] as const)(
    'refuses a tokenizer larger than the %s vocabulary before it trains',
    (side) => {
      const { tokenizer, specialIds } = task;
      const model = tinyModel({ src: size, tgt: size, [side]: size - 1 });
      expect(() => new Trainer(model, { tokenizer, specialIds, reporter: null })).toThrow(
        `Trainer: the tokenizer has ${size} ids, the model only ${size - 1}`,
      );
      model.dispose();
    },
  );
});
