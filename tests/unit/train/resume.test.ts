import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  AdamW,
  batches,
  manualSeed,
  noam,
  SGD,
  Trainer,
  type BatchSource,
  type CheckpointEvent,
  type FitOptions,
  type History,
  type TrainerOptions,
} from 'torchformer';
import { tinyModel, tinyTask, weightsOf, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let folder: string;
beforeAll(async () => {
  task = await tinyTask();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-resume-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Seven batches an epoch, in another order each time. */
const train: BatchSource = (epoch) =>
  batches(task.dataset, { batchSize: 7, shuffle: true, seed: 5, epoch });

interface Run {
  options?: Partial<TrainerOptions>;
  fit?: Partial<FitOptions>;
  source?: BatchSource;
  /** Ends the run after this number of its steps, as a signal does. */
  stopAfter?: number;
  /** Batches of the validation after which the run is ended. */
  stopInValidation?: number;
  /** Complete validations after which the run is ended, before their model is saved. */
  stopAfterValidation?: number;
  optimizer?: 'adam' | 'adamw' | 'sgd';
}

/** A new process's part of the run in `out`: everything is made anew. */
async function run(
  out: string,
  {
    options = {},
    fit = {},
    source = train,
    stopAfter,
    stopInValidation,
    stopAfterValidation,
    optimizer,
  }: Run = {},
) {
  manualSeed(3);
  const model = tinyModel(task.tokenizer.vocabSize, { dropout: 0.3 });
  const optimizers = { adamw: AdamW, sgd: SGD };
  const controller = new AbortController();
  const trainer = new Trainer(model, {
    specialIds: task.specialIds,
    tokenizer: task.tokenizer,
    out: join(folder, out),
    resume: true,
    schedule: noam({ dModel: 16, warmup: 10 }),
    reporter: null,
    ...(optimizer === undefined || optimizer === 'adam'
      ? {}
      : { optimizer: new optimizers[optimizer](model.parameters()) }),
    ...options,
  });
  let taken = 0;
  let validated = 0;
  let validations = 0;
  trainer.on('step', () => {
    if (++taken === stopAfter) controller.abort();
  });
  trainer.on('validation', () => {
    if (++validations === stopAfterValidation) controller.abort();
  });
  trainer.on('validationBatch', () => {
    if (++validated === stopInValidation) controller.abort();
  });
  const validation = batches(task.dataset, { batchSize: 20 });
  try {
    const result = await trainer.fit(source, {
      epochs: 3,
      validation,
      signal: controller.signal,
      ...fit,
    });
    return { result, weights: weightsOf(model) };
  } finally {
    trainer.dispose();
    model.dispose();
  }
}

describe('a run that is resumed', () => {
  test.each([
    ['within an epoch', { stopAfter: 10 }],
    ['at the first step', { stopAfter: 1 }],
    ['at the end of an epoch', { stopAfter: 8 }],
    ['during a validation', { stopInValidation: 2 }],
  ] satisfies [string, Run][])('%s ends with the same weights, to the bit', async (_, stop) => {
    const whole = await run('whole');
    const first = await run('parts', stop);
    expect(first.result).toMatchObject({ aborted: true, reason: 'aborted' });
    const rest = await run('parts');
    expect(rest.result).toMatchObject({ reason: 'finished', epochs: 3, steps: 24 });
    expect(rest.weights).toEqual(whole.weights);
    expect(rest.result.best).toEqual(whole.result.best);
    for (const name of ['best', 'last']) {
      const bytes = (out: string) => readFileSync(join(folder, out, name, 'model.safetensors'));
      expect(bytes('parts').equals(bytes('whole'))).toBe(true);
    }
  });

  test.each(['adamw', 'sgd'] as const)('has the state of %s', async (optimizer) => {
    const options = { clip: 0.5, accumulate: 2 };
    const whole = await run('whole', { options, optimizer });
    for (const stopAfter of [2, 3, 4]) await run('parts', { options, optimizer, stopAfter });
    const rest = await run('parts', { options, optimizer });
    expect(rest.weights).toEqual(whole.weights);
  });

  test('has the scale of its float16 losses', async () => {
    const options = { dtype: 'float16' } as const;
    const whole = await run('whole', { options });
    await run('parts', { options, stopAfter: 5 });
    const rest = await run('parts', { options });
    expect(rest.weights).toEqual(whole.weights);
  });

  test('has averaged weights in its best model, and goes on from its own', async () => {
    const options = { averaging: { decay: 0.8 }, keepLast: 1 };
    const whole = await run('whole', { options });
    await run('parts', { options, stopAfter: 11 });
    const rest = await run('parts', { options });
    expect(rest.weights).toEqual(whole.weights);
    const bytes = (path: string) => readFileSync(join(folder, path, 'model.safetensors'));
    expect(bytes('parts/best').equals(bytes('whole/best'))).toBe(true);
    expect(bytes('parts/checkpoints/step-00000024').equals(bytes('parts/last'))).toBe(false);
  });

  test('has the records of all its parts', async () => {
    const whole = await run('whole');
    for (const stopAfter of [3, 7]) await run('parts', { stopAfter });
    const { result } = await run('parts');
    // Times differ; everything else was measured the same.
    const timeless = (records: readonly object[]) =>
      records.map((record) => ({ ...record, seconds: 0, trainSeconds: 0, validationSeconds: 0 }));
    for (const list of ['steps', 'validations', 'epochs'] as const) {
      expect(timeless(result.history[list])).toEqual(timeless(whole.result.history[list]));
    }
  });

  test('validates and saves at the same steps', async () => {
    const options = { saveEvery: 3, keepLast: 2, keepBest: 1 };
    const fit = { validateEvery: 4 };
    const whole = await run('whole', { options, fit });
    for (const stopAfter of [4, 5]) await run('parts', { options, fit, stopAfter });
    const rest = await run('parts', { options, fit });
    expect(rest.weights).toEqual(whole.weights);
    const kept = (out: string) => readdirSync(join(folder, out, 'checkpoints')).sort();
    expect(kept('parts')).toEqual(kept('whole'));
  });

  test('has the best model also if it was stopped right after its validation', async () => {
    const fit = { validateEvery: 6 };
    const whole = await run('whole', { fit });
    for (let part = 0; part < 4; part++) await run('parts', { fit, stopAfterValidation: 1 });
    const best = (out: string) => readFileSync(join(folder, out, 'best/model.safetensors'));
    expect(best('parts').equals(best('whole'))).toBe(true);
    expect(whole.result.best?.step).toBe(24);
  });

  test('keeps no model of a step only because it was stopped there', async () => {
    const options = { saveEvery: 6, keepLast: 2 };
    const kept = (out: string) => readdirSync(join(folder, out, 'checkpoints')).sort();
    await run('parts', { options, stopAfter: 13 });
    expect(kept('parts')).toEqual(['step-00000008', 'step-00000012']);
    // At a step that is saved anyway, before that has happened.
    await run('parts', { options, stopAfter: 18 - 13 });
    expect(kept('parts')).toEqual(['step-00000016', 'step-00000018']);
    await run('parts', { options, stopAfter: 23 - 18 });
    const { result } = await run('parts', { options });
    expect(result.reason).toBe('finished');
    await run('whole', { options });
    expect(kept('parts')).toEqual(kept('whole'));
    expect(kept('whole')).toEqual(['step-00000018', 'step-00000024']);
  });

  test('has the end of each epoch in its log before the state that has it', async () => {
    const seen: [number, number][] = [];
    const log = join(folder, 'run/log.jsonl');
    const checkpoint = ({ kind, epoch }: CheckpointEvent) => {
      if (kind !== 'last') return;
      const epochs = readFileSync(log, 'utf8').match(/^\{"event":"epoch"/gm) ?? [];
      seen.push([epoch, epochs.length]);
    };
    await run('run', { options: { listeners: [{ checkpoint }] } });
    expect(seen).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
  });

  test('that was killed between its last save and its history completes the history', async () => {
    await run('run', { fit: { epochs: 2 } });
    const path = join(folder, 'run/history.json');
    const whole = readFileSync(path, 'utf8');
    await run('short', { fit: { epochs: 1 } });
    writeFileSync(path, readFileSync(join(folder, 'short/history.json')));
    await run('run', { fit: { epochs: 2 } });
    const stepsOf = (text: string) => (JSON.parse(text) as History).steps;
    expect(stepsOf(readFileSync(path, 'utf8'))).toEqual(stepsOf(whole));
  });

  test('does not depend on the clock of the system', async () => {
    const whole = await run('whole');
    let now = Date.UTC(2030, 0);
    // It jumps by years, back and forth, at each look.
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => (now = 4e12 - now));
    try {
      await run('parts', { stopAfter: 10 });
      const rest = await run('parts');
      expect(rest.weights).toEqual(whole.weights);
      const seconds = rest.result.history.steps.map((record) => record.seconds);
      expect(seconds).toEqual([...seconds].sort((a, b) => a - b));
      expect(seconds.at(-1)).toBeLessThan(60);
    } finally {
      clock.mockRestore();
    }
  });

  test('begins anew if it was stopped before its first save', async () => {
    const whole = await run('whole');
    const rest = await run('nothing there');
    expect(rest.weights).toEqual(whole.weights);
  });

  test('that has ended does nothing more, and is extended only if asked to', async () => {
    const { weights } = await run('short', { fit: { epochs: 2 } });
    const again = await run('short', { fit: { epochs: 2 } });
    expect(again.weights).toEqual(weights);
    expect(again.result).toMatchObject({ reason: 'finished', steps: 16 });
    await expect(run('short')).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining('epochs was 2, is 3') as string,
    });
    const extended = await run('short', { fit: { extend: true } });
    const whole = await run('whole');
    expect(extended.weights).toEqual(whole.weights);
  });
});

describe('a run is not resumed', () => {
  beforeEach(async () => {
    await run('run', { stopAfter: 10 });
  });
  const refused = async (change: Run, message: string) => {
    const before = readFileSync(join(folder, 'run/last/training.json'), 'utf8');
    await expect(run('run', change)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining(message) as string,
    });
    expect(readFileSync(join(folder, 'run/last/training.json'), 'utf8')).toBe(before);
  };

  test('with another learning rate, however it is given', async () => {
    const schedule = noam({ dModel: 16, warmup: 10, factor: 2 });
    await refused({ options: { schedule } }, 'learningRate was {"step 1":');
  });

  test('with other settings, all of which are named', async () => {
    await refused(
      { options: { clip: 2, accumulate: 3 } },
      'accumulate was 1, is 3; clip was not set, is 2',
    );
    await refused({ options: { settings: { data: 'b' } } }, 'data was not set, is "b"');
    await refused({ optimizer: 'sgd' }, 'optimizer was "Adam", is "SGD"');
  });

  test('with batches in another order', async () => {
    const source: BatchSource = (epoch) =>
      batches(task.dataset, { batchSize: 7, shuffle: true, seed: 6, epoch });
    await refused({ source }, 'its first 2 batches are not those that it was trained on');
  });

  test('from a state of another version, a broken one, or a model without one', async () => {
    const path = join(folder, 'run/last/training.json');
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace('"formatVersion": 1', '"formatVersion": 9'));
    await refused({}, 'its formatVersion is 9, but this release reads 1');
    writeFileSync(path, text.slice(0, 100));
    await refused({}, 'not valid JSON');
    rmSync(path);
    await expect(run('run')).rejects.toThrow(/no training.json to resume from/);
  });
});
