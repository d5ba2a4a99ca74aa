/** What says that it has been disposed of is what the user disposed of. */
import { beforeAll, expect, test } from 'vitest';
import {
  greedy,
  paddingMask,
  RecomputingStepDecoder,
  saveModel,
  tensor,
  Trainer,
  Translator,
} from 'torchformer';
import { tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

function translator(): Translator {
  const { tokenizer, specialIds } = task;
  return new Translator(tinyModel(tokenizer.vocabSize).eval(), { tokenizer, specialIds });
}

const disposedOf = (message: string) => ({ code: 'ERR_DISPOSED', message });

test('a translator names itself', async () => {
  const used = translator();
  used.dispose();
  const fault = disposedOf(
    'Translator.translate: the translator has been disposed of; load a new one',
  );
  await expect(used.translate(['sixty'])).rejects.toMatchObject(fault);
  await expect(used.translate([])).rejects.toMatchObject(fault);
});

test('a translator that is disposed of while it translates names itself', async () => {
  const used = translator();
  const running = used.translate(['sixty', 'twenty'], { batchSize: 1 });
  setImmediate(() => used.dispose());
  await expect(running).rejects.toMatchObject(
    disposedOf('Translator.translate: the translator has been disposed of; load a new one'),
  );
});

test('all that takes a model names the model', async () => {
  const { tokenizer, specialIds } = task;
  const model = tinyModel(tokenizer.vocabSize).eval();
  model.dispose();
  const src = tensor([[1n, 5n, 2n]]);
  const mask = paddingMask(src, 0);
  const fault = (owner: string) => disposedOf(`${owner}: the model has been disposed of`);
  await expect(greedy(model, src, mask, specialIds)).rejects.toMatchObject(fault('greedy'));
  await expect(saveModel('folder', model)).rejects.toMatchObject(fault('saveModel'));
  const throwing: [string, () => unknown][] = [
    ['Translator', () => new Translator(model, { tokenizer, specialIds })],
    ['Trainer', () => new Trainer(model, { specialIds, reporter: null })],
    ['RecomputingStepDecoder', () => new RecomputingStepDecoder(model, src, mask, 1)],
  ];
  for (const [owner, make] of throwing) {
    expect(make).toThrow(expect.objectContaining(fault(owner)) as Error);
  }
  for (const used of [src, mask]) used.dispose();
});

test('a step decoder names itself', () => {
  const model = tinyModel(task.tokenizer.vocabSize).eval();
  const src = tensor([[1n, 5n, 2n]]);
  const mask = paddingMask(src, 0);
  const row = tensor([0n]);
  const decoder = new RecomputingStepDecoder(model, src, mask, 1);
  decoder.dispose();
  const uses: [string, () => unknown][] = [
    ['next', () => decoder.next()],
    ['append', () => decoder.append(row)],
    ['select', () => decoder.select(row)],
  ];
  for (const [method, use] of uses) {
    const fault = disposedOf(
      `RecomputingStepDecoder.${method}: the decoder has been disposed of; create a new one`,
    );
    expect(use).toThrow(expect.objectContaining(fault) as Error);
  }
  for (const used of [src, mask, row, model]) used.dispose();
});
