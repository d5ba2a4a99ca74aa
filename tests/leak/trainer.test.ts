import { beforeAll, expect, test } from 'vitest';
import { batches, memory, Trainer, Translator } from 'torchformer';
import { firstBatches, tinyModel, tinyTask, type TinyTask } from '../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

test('500 training steps leave the same number of live tensors after each, and bounded memory', async () => {
  const tensors: number[] = [];
  const bytes: number[] = [];
  const model = tinyModel(task.tokenizer.vocabSize, { dModel: 16, dFf: 16, h: 2, dropout: 0.1 });
  const trainer = new Trainer(model, {
    specialIds: task.specialIds,
    clip: 1,
    accumulate: 2,
    reporter: {
      step: () => {
        tensors.push(memory().tensors);
        bytes.push(memory().nativeBytes);
      },
    },
  });
  await trainer.fit((epoch) => batches(task.dataset, { batchSize: 1, shuffle: true, epoch }), {
    epochs: 20,
  });
  expect(tensors).toHaveLength(500);
  expect(new Set(tensors).size).toBe(1);
  // Batches differ in length, so bytes vary; they do not grow.
  const largest = (values: number[]) => Math.max(...values);
  expect(largest(bytes.slice(250))).toBeLessThanOrEqual(largest(bytes.slice(0, 250)) * 1.05);
  trainer.dispose();
  model.dispose();
});

test('a trainer, its model and a translator leave nothing behind', async () => {
  const before = memory().tensors;
  const model = tinyModel(task.tokenizer.vocabSize);
  const { tokenizer, specialIds } = task;
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    samples: ['twenty one'],
    reporter: null,
  });
  await trainer.fit(firstBatches(task, 4, 2), { epochs: 2, validation: firstBatches(task, 2, 2) });
  const during = memory().tensors;
  const translator = new Translator(model.eval(), { tokenizer, specialIds });
  await translator.translate(['twenty one', 'sixty', '']);
  expect(memory().tensors).toBe(during);
  trainer.dispose();
  translator.dispose();
  expect(memory().tensors).toBe(before);
});
