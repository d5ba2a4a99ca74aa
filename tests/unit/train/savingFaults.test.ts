import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadModel, Trainer, type History, type Transformer } from 'torchformer';
// Internal: no test fills a disk.
import { checkRoom, weightBytes } from '../../../dist/train/run/runRoom.js';
import { firstBatches, tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let model: Transformer;
let folder: string;
beforeAll(async () => {
  task = await tinyTask();
});
beforeEach(() => {
  model = tinyModel(task.tokenizer.vocabSize);
  folder = mkdtempSync(join(tmpdir(), 'torchformer-room-'));
});
afterEach(() => {
  model.dispose();
  rmSync(folder, { recursive: true, force: true });
});

describe('the room for a run', () => {
  test('counts each model and the copy while one is replaced, in the error, too', async () => {
    const models = ['best', 'last'];
    await expect(checkRoom(folder, [], { weights: 1e9, models: ['last'] })).resolves.toBe(
      undefined,
    );
    const error: unknown = await checkRoom(folder, [], { weights: 1e15, models }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 'ERR_CHECKPOINT' });
    expect((error as Error).message).toMatch(
      /saving needs 3000000\.0 GB \(best\/ and last\/, and a copy while one is replaced, 1000000\.0 GB each\), but the disk has .* free/,
    );
  });

  test.each(['none', 'all'] as const)('is that of the weights as saved, tied: %s', async (tie) => {
    model.dispose();
    model = tinyModel(task.tokenizer.vocabSize, { tie });
    const trainer = new Trainer(model, {
      specialIds: task.specialIds,
      out: folder,
      reporter: null,
    });
    await trainer.fit(firstBatches(task, 2, 1), { epochs: 1 });
    const { length } = readFileSync(join(folder, 'last', 'model.safetensors'));
    const bytes = weightBytes(model);
    expect(bytes).toBeLessThan(length);
    expect(bytes).toBeGreaterThan(length - 16 * 1024);
  });
});

/** Somebody's folder in the place of a model, which no save replaces. */
function block(name: string): void {
  rmSync(join(folder, name), { recursive: true, force: true });
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, 'thesis.txt'), 'years of work');
}

/** @param onSaved called when the state after an epoch was saved, or could not be */
function trainerThat(onSaved: (epoch: number) => void, messages: string[] = []): Trainer {
  const { specialIds, tokenizer } = task;
  let saved = 0;
  return new Trainer(model, {
    ...{ specialIds, tokenizer, out: folder, learningRate: 1e-2 },
    reporter: {
      checkpoint: ({ kind }) => {
        if (kind === 'last') onSaved(++saved);
      },
      message: (text) => {
        messages.push(text);
        if (text.includes('last: ')) onSaved(++saved);
      },
    },
  });
}

const savedHistory = () =>
  JSON.parse(readFileSync(join(folder, 'history.json'), 'utf8')) as History;

describe('a save that fails', () => {
  test('does not end the training, and the next one is as good as ever', async () => {
    const messages: string[] = [];
    const trainer = trainerThat((epoch) => {
      if (epoch === 1) block('last');
      if (epoch === 3) rmSync(join(folder, 'last'), { recursive: true });
    }, messages);
    const { epochs } = await trainer.fit(firstBatches(task, 4, 2), { epochs: 4 });
    expect(epochs).toBe(4);
    expect(messages).toEqual([
      expect.stringMatching(/^warning: .*last: contains files but no model/),
      expect.stringMatching(/^warning: .*last: contains files but no model/),
    ]);
    const { config, model: loaded } = await loadModel(join(folder, 'last'));
    expect(config.training?.['epoch']).toBe(4);
    loaded.dispose();
  });

  test('at the end is an error, after the history has been written', async () => {
    const trainer = trainerThat((epoch) => {
      if (epoch === 1) block('last');
    });
    await expect(trainer.fit(firstBatches(task, 4, 2), { epochs: 3 })).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringMatching(
        /the state after step 6 was not saved: .*contains files but no model.*still in memory: saveModel/,
      ) as string,
    });
    expect(savedHistory().steps).toHaveLength(6);
    expect(savedHistory().epochs).toHaveLength(3);
    expect(readdirSync(join(folder, 'last'))).toEqual(['thesis.txt']);
    expect(existsSync(join(folder, '.training.lock'))).toBe(false);
  });

  test('of the best model leaves the best one that was saved', async () => {
    let blocked = false;
    const trainer = trainerThat((epoch) => {
      if (epoch === 2) {
        block('best');
        blocked = true;
      }
      if (epoch === 4) rmSync(join(folder, 'best'), { recursive: true });
    });
    const batches = firstBatches(task, 4, 2);
    const { best } = await trainer.fit(batches, { epochs: 5, validation: batches });
    expect(blocked).toBe(true);
    // The loss falls in every epoch; the models of 3 and 4 are lost.
    expect(trainer.history.epochs.every((epoch) => epoch.best)).toBe(true);
    expect(best?.epoch).toBe(5);
    const { config, model: loaded } = await loadModel(join(folder, 'best'));
    expect(config.training?.['epoch']).toBe(5);
    loaded.dispose();
  });

  test('of the best model does not count as the best', async () => {
    const trainer = trainerThat((epoch) => {
      if (epoch === 2) block('best');
    });
    const batches = firstBatches(task, 4, 2);
    const { best } = await trainer.fit(batches, { epochs: 4, validation: batches });
    expect(best?.epoch).toBe(2);
  });
});
