import { beforeAll, describe, expect, test } from 'vitest';
import {
  batches,
  evaluate,
  Trainer,
  TranslationDataset,
  type TrainerOptions,
  type TrainingListener,
  type Transformer,
} from 'torchformer';
// Internal: what a trainer watches its losses with.
import { LossWatch } from '../../../dist/train/lossWatch.js';
import {
  fiftyPairs,
  firstBatches,
  tinyModel,
  tinyTask,
  type TinyTask,
} from '../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

function trainerOf(model: Transformer, options: Partial<TrainerOptions>) {
  const messages: string[] = [];
  const { specialIds, tokenizer } = task;
  const reporter: TrainingListener = { message: (text) => void messages.push(text) };
  return { trainer: new Trainer(model, { specialIds, tokenizer, reporter, ...options }), messages };
}

describe('samples', () => {
  test('that cannot be translated are reported and end no training', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const samples = ['twenty one', 'twenty '.repeat(10), 'x'.repeat(200_000), 'thirty'];
    const { trainer, messages } = trainerOf(model, { samples });
    const { epochs } = await trainer.fit(firstBatches(task, 4, 2), { epochs: 2 });
    expect(epochs).toBe(2);
    const epoch = [
      expect.stringMatching(/^ {2}twenty one → /),
      expect.stringMatching(
        /^ {2}(twenty ){10}: skipped, it has 72 tokens .* the model's limit is 32$/,
      ),
      expect.stringMatching(/^ {2}x{120}…: skipped, it has too many characters$/),
      expect.stringMatching(/^ {2}thirty → /),
    ] as string[];
    expect(messages).toEqual([...epoch, ...epoch]);
    model.dispose();
  });

  test('of a model that never ends are short', async () => {
    const model = tinyModel(task.tokenizer.vocabSize, { maxLen: 1000 });
    const { trainer, messages } = trainerOf(model, {
      samples: ['one'],
      learningRate: 1e-9,
    });
    await trainer.fit(firstBatches(task, 2, 2), { epochs: 1 });
    const [, output = ''] = (messages[0] ?? '').split(' → ');
    // 16 tokens, each a character or a byte of one.
    expect([...output].length).toBeLessThanOrEqual(16);
    model.dispose();
  });
});

describe('validation rows that are longer than the table of positions', () => {
  const long = { src: 'twenty '.repeat(10), tgt: '20' };
  const longTarget = { src: 'twenty', tgt: '2'.repeat(60) };
  const [first, second] = fiftyPairs as [(typeof fiftyPairs)[0], (typeof fiftyPairs)[0]];

  async function batchesOf(pairs: { src: string; tgt: string }[], batchSize: number) {
    const { specialIds, tokenizer } = task;
    const dataset = await TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });
    return batches(dataset, { batchSize });
  }

  test.each([1, 2, 5])('are left out and reported, in batches of %i', async (batchSize) => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const { trainer, messages } = trainerOf(model, {});
    const validation = await batchesOf([long, first, longTarget, second], batchSize);
    await trainer.fit(firstBatches(task, 4, 2), { epochs: 1, validation });
    expect(messages).toEqual([
      "warning: skipped 2 validation rows longer than the model's position table (rows 1, 3)",
    ]);
    const { pad } = task.specialIds;
    const alone = await evaluate(model, await batchesOf([first, second], 1), { pad });
    const { validationLoss, validationTokens } = trainer.history.epochs[0] ?? {};
    expect(validationTokens).toBe(alone.tokens);
    expect(validationLoss).toBeCloseTo(alone.loss, 5);
    model.dispose();
  });

  test('are an error of evaluate unless someone takes their numbers', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const { pad } = task.specialIds;
    const source = await batchesOf([long, first], 2);
    await expect(evaluate(model, source, { pad })).rejects.toThrow(RangeError);
    const rows: number[] = [];
    await evaluate(model, source, { pad, onLongRows: (long) => rows.push(...long) });
    expect(rows).toEqual([1]);
    const onLongRows = 5 as unknown as () => void;
    await expect(evaluate(model, source, { pad, onLongRows })).rejects.toThrow('onLongRows');
    model.dispose();
  });
});

describe('a loss that explodes', () => {
  test('is reported once, with what to do', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const { trainer, messages } = trainerOf(model, { learningRate: 50 });
    await trainer.fit(firstBatches(task, 50, 5), { epochs: 4 });
    expect(messages).toEqual([
      expect.stringMatching(
        /^warning: the loss is \d+\.\d\d, but guessing gives 5\.\d\d: it has exploded\. Try a smaller learningRate/,
      ),
    ]);
    model.dispose();
  });

  test('is one that stays above twice that of guessing', () => {
    const watch = new LossWatch(100);
    for (let step = 0; step < 50; step++) {
      expect(watch.step(step % 10 === 9 ? 9 : 1000)).toBe(null);
    }
    expect(watch.epoch(9.2)).toBe(null);
    for (let step = 0; step < 9; step++) expect(watch.step(9.3)).toBe(null);
    expect(watch.step(9.3)).toMatch(/^warning: the loss is 9\.30, but guessing gives 4\.61/);
    for (let step = 0; step < 50; step++) expect(watch.step(1000)).toBe(null);
    expect(new LossWatch(100).epoch(9.3)).toMatch(/^warning/);
    expect(new LossWatch(100).epoch(NaN)).toBe(null);
  });

  test('is not seen in a training that learns', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const { trainer, messages } = trainerOf(model, { learningRate: 3e-3 });
    await trainer.fit(firstBatches(task, 50, 5), { epochs: 2 });
    expect(messages).toEqual([]);
    model.dispose();
  });
});
