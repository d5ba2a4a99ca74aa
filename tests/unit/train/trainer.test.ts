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
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Adam,
  batches,
  crossEntropy,
  evaluate,
  full,
  loadModel,
  noam,
  noGrad,
  SGD,
  Trainer,
  tidy,
  tokenLossSum,
  Translator,
  type Batch,
  type Batches,
  type BatchSource,
  type EpochRecord,
  type StepEvent,
  type StepRecord,
  type Tensor,
  type TrainerOptions,
  type TrainingListener,
  type ValidationBatchEvent,
} from 'torchformer';
import {
  firstBatches,
  largestDifference,
  raggedPairs,
  tinyModel,
  tinyTask,
  weightsOf,
  type TinyTask,
} from '../../support/tinyTranslation.js';

let task: TinyTask;
let folder: string;
beforeAll(async () => {
  task = await tinyTask(raggedPairs);
  folder = mkdtempSync(join(tmpdir(), 'torchformer-trainer-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A step, or a batch of the validation, with what the epoch has so far. */
type Progress = ValidationBatchEvent & { readonly part: 'train' | 'validation' };

class Recorder implements TrainingListener {
  readonly batches: Progress[] = [];
  readonly epochs: EpochRecord[] = [];
  readonly messages: string[] = [];
  finished = 0;
  constructor(private readonly onBatch: (progress: Progress) => void = () => undefined) {}
  step(event: StepEvent): void {
    const { epochLoss: loss, epochTokens: tokens } = event;
    this.#batch({ ...event, part: 'train', loss, tokens });
  }
  validationBatch(event: ValidationBatchEvent): void {
    this.#batch({ ...event, part: 'validation' });
  }
  #batch(progress: Progress): void {
    this.batches.push(progress);
    this.onBatch(progress);
  }
  epoch(record: EpochRecord): void {
    this.epochs.push(record);
  }
  message(text: string): void {
    this.messages.push(text);
  }
  end(): void {
    this.finished++;
  }
}

/** A small model and its trainer; SGD unless told otherwise, so that steps can be compared. */
function setup(options: Partial<TrainerOptions> = {}) {
  const model = tinyModel(task.tokenizer.vocabSize);
  const recorder = new Recorder();
  const optimizer = new SGD(model.parameters());
  const trainer = new Trainer(model, {
    specialIds: task.specialIds,
    reporter: recorder,
    learningRate: 0.1,
    optimizer,
    ...options,
  });
  const dispose = () => {
    trainer.dispose();
    model.dispose();
  };
  return { model, trainer, recorder, dispose };
}

/** A batch whose targets are all padding. */
function emptyBatch(): Batch {
  const [batch] = firstBatches(task, 2, 2);
  const { tgtY, ...rest } = batch as Batch;
  const padding = full(tgtY.shape, task.specialIds.pad, { dtype: 'int64' });
  tgtY.dispose();
  return { ...rest, tgtY: padding, ntokens: 0 };
}

describe('the loss of a batch', () => {
  test('is the one of all positions with the padding ignored, and so are the gradients', () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const { pad } = task.specialIds;
    const [batch] = firstBatches(task, 8, 8);
    const { src, tgt, tgtY, srcMask, tgtMask, ntokens } = batch as Batch;
    expect(ntokens).toBeLessThan(tgtY.numel);

    const gradientsOf = (loss: Tensor) => {
      model.zeroGrad();
      loss.backward();
      return Object.fromEntries(
        model.namedParameters().map(([name, weight]) => [name, (weight.grad as Tensor).data()]),
      );
    };
    tidy(() => {
      const selected = tokenLossSum(model, batch as Batch, pad);
      const everywhere = crossEntropy(
        model.generator.forward(model.forward(src, tgt, srcMask, tgtMask)),
        tgtY,
        { ignoreIndex: pad, reduction: 'sum' },
      );
      expect(selected.item()).toBeCloseTo(everywhere.item(), 3);
      const difference = largestDifference(gradientsOf(selected), gradientsOf(everywhere));
      expect(difference).toBeLessThan(1e-4);
    });
    batch?.dispose();
    model.dispose();
  });
});

describe('one optimizer step', () => {
  test('of accumulated batches of unequal length equals that of one large batch', async () => {
    const one = setup();
    await one.trainer.fit(firstBatches(task, 5, 5), { epochs: 1 });
    const accumulated = setup({ accumulate: 3 });
    await accumulated.trainer.fit(firstBatches(task, 5, 2), { epochs: 1 });

    expect(accumulated.trainer.history.steps).toHaveLength(1);
    const [whole] = one.trainer.history.steps;
    const [parts] = accumulated.trainer.history.steps;
    expect(parts?.tokens).toBe(whole?.tokens);
    expect(parts?.loss).toBeCloseTo(whole?.loss as number, 5);
    expect(largestDifference(weightsOf(one.model), weightsOf(accumulated.model))).toBeLessThan(
      1e-6,
    );
    one.dispose();
    accumulated.dispose();
  });

  test('is also taken for the batches left over at the end of an epoch', async () => {
    const { trainer, dispose } = setup({ accumulate: 2 });
    await trainer.fit(firstBatches(task, 5, 1), { epochs: 1 });
    expect(trainer.history.steps).toHaveLength(3);
    dispose();
  });

  test('has the loss of the model before it', async () => {
    const { model, trainer, dispose } = setup();
    const before = await evaluate(model, firstBatches(task, 8, 8), { pad: task.specialIds.pad });
    await trainer.fit(firstBatches(task, 8, 8), { epochs: 1 });
    expect(trainer.history.steps[0]?.loss).toBeCloseTo(before.loss, 5);
    dispose();
  });

  test('follows the schedule, whatever rate the optimizer was made with', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const schedule = noam({ dModel: 32, warmup: 3 });
    const optimizer = new Adam(model.parameters(), { lr: 123 });
    const trainer = new Trainer(model, {
      specialIds: task.specialIds,
      reporter: null,
      optimizer,
      schedule,
    });
    await trainer.fit(firstBatches(task, 5, 1), { epochs: 1 });
    expect(trainer.history.steps.map(({ learningRate }) => learningRate)).toEqual(
      [1, 2, 3, 4, 5].map(schedule),
    );
    trainer.dispose();
    optimizer.dispose();
    model.dispose();
  });

  test('is bounded by clip', async () => {
    const clipped = setup({ clip: 1e-3 });
    const before = weightsOf(clipped.model);
    await clipped.trainer.fit(firstBatches(task, 5, 5), { epochs: 1 });
    const moved = largestDifference(before, weightsOf(clipped.model));
    expect(moved).toBeGreaterThan(0);
    // One step of SGD moves no weight further than rate · norm.
    expect(moved).toBeLessThanOrEqual(0.1 * 1e-3 * 1.001);
    clipped.dispose();
  });
});

describe('a batch without a target token', () => {
  test('changes no weight and is counted; the mean stays finite', async () => {
    const [first, second] = firstBatches(task, 4, 2);
    const plain = setup({ clip: 1 });
    await plain.trainer.fit([first as Batch, second as Batch], { epochs: 1 });
    const withEmpty = setup({ clip: 1 });
    const empty = emptyBatch();
    await withEmpty.trainer.fit([first as Batch, empty, second as Batch], { epochs: 1 });

    expect(weightsOf(withEmpty.model)).toEqual(weightsOf(plain.model));
    const [epoch] = withEmpty.recorder.epochs;
    expect(epoch?.skippedBatches).toBe(1);
    expect(epoch?.trainLoss).toBe(plain.recorder.epochs[0]?.trainLoss);
    expect(withEmpty.recorder.messages.join()).toContain('skipped 1 batch without a target token');
    for (const batch of [first, second]) batch?.dispose();
    empty.tgtY.dispose();
    plain.dispose();
    withEmpty.dispose();
  });

  test('has no part in a validation loss', async () => {
    const { model, dispose } = setup();
    const [batch] = firstBatches(task, 3, 3);
    const pad = task.specialIds.pad;
    const alone = await evaluate(model, [batch as Batch], { pad });
    const withEmpty = await evaluate(model, [emptyBatch(), batch as Batch], { pad });
    expect(withEmpty.loss).toBe(alone.loss);
    expect(await evaluate(model, [emptyBatch()], { pad })).toMatchObject({ loss: NaN, tokens: 0 });
    dispose();
  });
});

describe('a loss that is not finite', () => {
  const poison = (model: ReturnType<typeof tinyModel>) =>
    noGrad(() => model.generator.proj.bias?.fill_(NaN));

  test('stops the training with its place, before the step', async () => {
    const { model, trainer, recorder, dispose } = setup();
    poison(model);
    const before = weightsOf(model);
    await expect(trainer.fit(firstBatches(task, 4, 2), { epochs: 1 })).rejects.toMatchObject({
      code: 'ERR_NON_FINITE',
      message: expect.stringMatching(
        /the loss is NaN in epoch 1, batch 1; the step was not taken/,
      ) as string,
    });
    expect(weightsOf(model)).toEqual(before);
    expect(recorder.finished).toBe(1);
    dispose();
  });

  test("is left out and counted with nonFinite: 'skip'", async () => {
    const { model, trainer, recorder, dispose } = setup({ nonFinite: 'skip' });
    poison(model);
    const result = await trainer.fit(firstBatches(task, 4, 2), { epochs: 1 });
    expect(result.steps).toBe(0);
    expect(recorder.epochs[0]?.skippedSteps).toBe(2);
    dispose();
  });

  test('in validation is reported and never the best', async () => {
    const { model, trainer, recorder, dispose } = setup({ nonFinite: 'skip' });
    poison(model);
    const result = await trainer.fit(firstBatches(task, 2, 2), {
      epochs: 1,
      validation: firstBatches(task, 2, 2),
    });
    expect(result.best).toBeNull();
    expect(recorder.epochs[0]).toMatchObject({ validationLoss: NaN, best: false });
    expect(recorder.messages.join('\n')).toContain('the validation loss of epoch 1 is NaN');
    dispose();
  });
});

describe('validation', () => {
  test('runs in eval mode without gradients and restores the mode', async () => {
    const { model, trainer, dispose } = setup();
    const modes: boolean[] = [];
    const forward = model.forward.bind(model);
    const graphs: boolean[] = [];
    model.forward = (...inputs) => {
      const result = forward(...inputs);
      modes.push(model.training);
      graphs.push(result.requiresGrad);
      return result;
    };
    await trainer.fit(firstBatches(task, 4, 2), {
      epochs: 2,
      validation: firstBatches(task, 3, 3),
    });
    expect(modes).toEqual([true, true, false, true, true, false]);
    expect(graphs).toEqual(modes);
    expect(model.training).toBe(true);

    model.eval();
    await evaluate(model, firstBatches(task, 3, 3), { pad: task.specialIds.pad });
    expect(model.training).toBe(false);
    dispose();
  });

  test('restores the mode of each part of the model, also after an error', async () => {
    const { model, dispose } = setup();
    model.train();
    model.encoder.eval();
    model.encoder.layers.at(0).feedForward.train();
    const modes = () => model.modules().map(({ training }) => training);
    const before = modes();
    expect(new Set(before).size).toBe(2);
    await evaluate(model, firstBatches(task, 3, 3), { pad: task.specialIds.pad });
    expect(modes()).toEqual(before);
    const failing = evaluate(model, firstBatches(task, 3, 3), {
      pad: task.specialIds.pad,
      onBatch: () => {
        throw new Error('no more');
      },
    });
    await expect(failing).rejects.toThrow('no more');
    expect(modes()).toEqual(before);
    dispose();
  });

  test('gives the token mean over batches of different size', async () => {
    const { model, dispose } = setup();
    const pad = task.specialIds.pad;
    const whole = await evaluate(model, firstBatches(task, 7, 7), { pad });
    const parts = await evaluate(model, firstBatches(task, 7, 3), { pad });
    expect(parts.loss).toBeCloseTo(whole.loss, 5);
    expect(parts.tokens).toBe(whole.tokens);
    dispose();
  });

  test('of batches made with another pad id is an error that says so', async () => {
    const { model, dispose } = setup();
    await expect(
      evaluate(model, firstBatches(task, 2, 2), { pad: task.specialIds.eos }),
    ).rejects.toThrow(/was it made with another pad id/);
    dispose();
  });
});

describe('parts in eval mode', () => {
  /** Modes of all parts in each step, and behind the training. */
  async function modesIn(
    prepare: (trained: ReturnType<typeof setup>) => void,
    reporter: TrainingListener = {},
  ) {
    const trained = setup({
      tokenizer: task.tokenizer,
      samples: ['20'],
      reporter: Object.assign(new Recorder(), reporter),
    });
    const { model, trainer } = trained;
    const modes = () => model.modules().map(({ training }) => training);
    prepare(trained);
    const before = modes();
    const steps: boolean[][] = [];
    const forward = model.forward.bind(model);
    model.forward = (...inputs) => {
      const result = forward(...inputs);
      if (result.requiresGrad) steps.push(modes());
      return result;
    };
    const validation = firstBatches(task, 3, 3);
    await trainer.fit(firstBatches(task, 4, 2), { epochs: 2 });
    await trainer.fit(firstBatches(task, 4, 2), { epochs: 2, validation });
    expect(steps).toHaveLength(8);
    return { ...trained, before, steps, after: modes() };
  }

  test('stay in it while the others are trained', async () => {
    const { before, steps, after, dispose } = await modesIn(({ model }) => {
      model.train();
      model.encoder.eval();
    });
    expect(new Set(before).size).toBe(2);
    for (const modes of [...steps, after]) expect(modes).toEqual(before);
    dispose();
  });

  test('return to it in the next epoch if the whole model was used in eval mode between', async () => {
    let used: ReturnType<typeof setup>;
    const { before, steps, dispose } = await modesIn(
      (trained) => {
        used = trained;
        trained.model.train();
        trained.model.decoder.layers.eval();
      },
      { epoch: () => void used.model.eval() },
    );
    for (const modes of steps) expect(modes).toEqual(before);
    dispose();
  });

  test('are trained if the whole model is in eval mode, as loadModel returns it', async () => {
    const { steps, after, dispose } = await modesIn(({ model }) => model.eval());
    for (const modes of [...steps, after]) expect(modes.every((mode) => mode)).toBe(true);
    dispose();
  });

  test('have no dropout', async () => {
    const lossesWith = async (dropout: number) => {
      const model = tinyModel(task.tokenizer.vocabSize, { dropout, attentionDropout: dropout });
      for (const part of model.children()) part.eval();
      expect(model.training).toBe(true);
      const { specialIds } = task;
      const trainer = new Trainer(model, { specialIds, reporter: null, learningRate: 0.01 });
      await trainer.fit(firstBatches(task, 4, 2), { epochs: 2 });
      const losses = trainer.history.steps.map(({ loss }) => loss);
      trainer.dispose();
      model.dispose();
      return losses;
    };
    expect(await lossesWith(0.5)).toEqual(await lossesWith(0));
  });
});

describe('the event loop', () => {
  test('gets a turn in every step of training and validation', async () => {
    let turns = 0;
    let running = true;
    const count = () => {
      turns++;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    const seen: number[] = [];
    const model = tinyModel(task.tokenizer.vocabSize);
    const trainer = new Trainer(model, {
      specialIds: task.specialIds,
      reporter: new Recorder(() => seen.push(turns)),
    });
    await trainer.fit(firstBatches(task, 10, 1), {
      epochs: 1,
      validation: firstBatches(task, 10, 1),
    });
    running = false;
    expect(seen).toHaveLength(20);
    for (let index = 1; index < seen.length; index++) {
      expect(seen[index]).toBeGreaterThan(seen[index - 1] as number);
    }
    trainer.dispose();
    model.dispose();
  });
});

describe('a signal', () => {
  test('stops after the current step and leaves a model that loads', async () => {
    const controller = new AbortController();
    const out = join(folder, 'aborted');
    const recorder = new Recorder(() => {
      if (recorder.batches.length === 5) controller.abort();
    });
    const { model, trainer, dispose } = setup({
      out,
      tokenizer: task.tokenizer,
      reporter: recorder,
    });
    const result = await trainer.fit(firstBatches(task, 20, 1), {
      epochs: 3,
      validation: firstBatches(task, 2, 2),
      signal: controller.signal,
    });
    expect(result).toMatchObject({ aborted: true, steps: 5, epochs: 0, best: null });
    expect(readdirSync(out).sort()).toEqual(['history.json', 'last', 'log.jsonl', 'loss.svg']);
    const loaded = await loadModel(out);
    expect(loaded.config.training).toMatchObject({ step: 5, epoch: 0 });
    expect(weightsOf(loaded.model)).toEqual(weightsOf(model));
    loaded.model.dispose();
    dispose();
  });

  test('during validation leaves the epoch open, and validates when it goes on', async () => {
    const controller = new AbortController();
    const recorder = new Recorder(({ part }) => {
      if (part === 'validation') controller.abort();
    });
    const { trainer, dispose } = setup({ reporter: recorder });
    const data = firstBatches(task, 2, 2);
    const validation = firstBatches(task, 4, 1);
    const options = { epochs: 1, validation };
    const result = await trainer.fit(data, { ...options, signal: controller.signal });
    expect(result).toMatchObject({ aborted: true, epochs: 0, steps: 1, best: null });
    expect(recorder.epochs).toEqual([]);
    const rest = await trainer.fit(data, options);
    expect(rest).toMatchObject({ reason: 'finished', epochs: 1, steps: 1, best: { epoch: 1 } });
    expect(trainer.history.validationBatches).toHaveLength(4);
    dispose();
  });

  test('that is aborted already lets no step happen and writes no model', async () => {
    const out = join(folder, 'never');
    const { model, trainer, dispose } = setup({ out });
    const before = weightsOf(model);
    const result = await trainer.fit(firstBatches(task, 2, 2), {
      epochs: 1,
      signal: AbortSignal.abort(),
    });
    expect(result).toMatchObject({ aborted: true, steps: 0 });
    expect(weightsOf(model)).toEqual(before);
    expect(existsSync(join(out, 'last'))).toBe(false);
    dispose();
  });

  test('that is aborted already leaves the models that may be overwritten', async () => {
    const out = join(folder, 'earlier');
    mkdirSync(join(out, 'best'), { recursive: true });
    const { trainer, dispose } = setup({ out, overwrite: true });
    await trainer.fit(firstBatches(task, 2, 2), { epochs: 1, signal: AbortSignal.abort() });
    expect(readdirSync(out)).toEqual(['best']);
    await trainer.fit(firstBatches(task, 2, 2), { epochs: 1 });
    expect(readdirSync(out).sort()).toEqual(['history.json', 'last', 'log.jsonl', 'loss.svg']);
    dispose();
  });

  test('needs no handler of ours: the library adds none to the process', async () => {
    const listeners = () => ['SIGINT', 'SIGTERM'].map((name) => process.listenerCount(name));
    const before = listeners();
    const { trainer, dispose } = setup({
      reporter: new Recorder(() => expect(listeners()).toEqual(before)),
    });
    await trainer.fit(firstBatches(task, 2, 2), { epochs: 1 });
    expect(trainer.history.steps).toHaveLength(1);
    dispose();
  });
});

describe('the folder of a run', () => {
  test('has the best and the last model, the history and the picture', async () => {
    const out = join(folder, 'run');
    const { model, trainer, dispose } = setup({
      out,
      tokenizer: task.tokenizer,
      columns: { source: 'en', target: 'digits' },
      learningRate: 0.5,
    });
    const result = await trainer.fit(firstBatches(task, 20, 5), {
      epochs: 3,
      validation: firstBatches(task, 20, 5),
    });
    expect(readdirSync(out).sort()).toEqual([
      'best',
      'history.json',
      'last',
      'log.jsonl',
      'loss.svg',
    ]);
    const history = JSON.parse(
      readFileSync(join(out, 'history.json'), 'utf8'),
    ) as typeof result.history;
    expect(history).toEqual(JSON.parse(JSON.stringify(result.history)));
    expect(history.steps).toHaveLength(12);
    expect(history.validationBatches).toHaveLength(12);
    expect(readFileSync(join(out, 'loss.svg'), 'utf8')).toMatch(/^<svg .*<\/svg>\n$/s);

    const best = await loadModel(out);
    expect(best.folder).toBe(join(out, 'best'));
    expect(best.config).toMatchObject({
      columns: { source: 'en', target: 'digits' },
      specialIds: task.specialIds,
      training: { epoch: result.best?.epoch, validationLoss: result.best?.loss },
    });
    const last = await loadModel(join(out, 'last'));
    expect(weightsOf(last.model)).toEqual(weightsOf(model));
    best.model.dispose();
    last.model.dispose();
    dispose();
  });

  test('with the models of an earlier run is refused unless they may go', async () => {
    const out = join(folder, 'twice');
    const first = setup({ out });
    await first.trainer.fit(firstBatches(task, 4, 2), {
      epochs: 1,
      validation: firstBatches(task, 2, 2),
    });
    first.dispose();
    const second = setup({ out });
    await expect(second.trainer.fit(firstBatches(task, 4, 2), { epochs: 1 })).rejects.toMatchObject(
      {
        code: 'ERR_CHECKPOINT',
        message: expect.stringContaining('models of an earlier run (best/, last/)') as string,
      },
    );
    second.dispose();
    const third = setup({ out, overwrite: true });
    await third.trainer.fit(firstBatches(task, 4, 2), { epochs: 1 });
    expect(readdirSync(out)).not.toContain('best');
    third.dispose();
  });

  test('that cannot be made stops before the first step', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const { trainer, dispose } = setup({ out: join(file, 'run') });
    await expect(trainer.fit(firstBatches(task, 4, 2), { epochs: 1 })).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining('a part of the path is a file') as string,
    });
    expect(trainer.history.steps).toHaveLength(0);
    dispose();
  });
});

describe('fit', () => {
  test('goes on where it ended when it is called again', async () => {
    const whole = setup();
    await whole.trainer.fit(firstBatches(task, 6, 2), { epochs: 2 });
    const parts = setup();
    await parts.trainer.fit(firstBatches(task, 6, 2), { epochs: 1 });
    const result = await parts.trainer.fit(firstBatches(task, 6, 2), { epochs: 1 });
    expect(result).toMatchObject({ epochs: 2, steps: 6 });
    const withoutTimes = (steps: readonly StepRecord[]) =>
      steps.map((record) => ({ ...record, seconds: 0 }));
    expect(withoutTimes(result.history.steps)).toEqual(withoutTimes(whole.trainer.history.steps));
    expect(weightsOf(parts.model)).toEqual(weightsOf(whole.model));
    whole.dispose();
    parts.dispose();
  });

  /** Target tokens of each batch of a pass. */
  const tokensOf = (all: Iterable<Batch>) =>
    Array.from(all, (batch) => {
      batch.dispose();
      return batch.ntokens;
    });
  const shuffled = (epoch?: number) =>
    batches(task.dataset, { batchSize: 5, shuffle: true, seed: 3, epoch });

  test.each<[string, (all: Batches) => BatchSource]>([
    ['batches', (all) => all],
    ['a function that returns the same batches', (all) => () => all],
    ['a function that makes batches without their epoch', () => () => shuffled()],
    ['a function that makes batches of the epoch', () => (epoch) => shuffled(epoch)],
  ])('has a new order in each epoch from shuffled %s', async (_, sourceOf) => {
    const { trainer, dispose } = setup();
    const source = sourceOf(shuffled());
    await trainer.fit(source, { epochs: 2, validation: source });
    await trainer.fit(source, { epochs: 1, validation: source });
    const expected = [1, 2, 3].map((epoch) => tokensOf(shuffled(epoch)));
    expect(new Set(expected.map((tokens) => tokens.join())).size).toBe(3);
    const { steps, validationBatches } = trainer.history;
    for (const trained of [steps, validationBatches]) {
      const ofEpoch = (epoch: number) => trained.filter((step) => step.epoch === epoch);
      const tokens = [1, 2, 3].map((epoch) => ofEpoch(epoch).map((step) => step.tokens));
      expect(tokens).toEqual(expected);
    }
    dispose();
  });

  test('counts on from the epoch that the batches were made with', async () => {
    const { trainer, dispose } = setup();
    await trainer.fit(shuffled(7), { epochs: 2 });
    const tokens = trainer.history.steps.map((step) => step.tokens);
    expect(tokens).toEqual([7, 8].flatMap((epoch) => tokensOf(shuffled(epoch))));
    dispose();
  });

  test('of an iterator that is used up after one epoch is an error that tells the way out', async () => {
    const { trainer, dispose } = setup();
    const once = firstBatches(task, 4, 2)[Symbol.iterator]() as IterableIterator<Batch>;
    await expect(trainer.fit(once, { epochs: 2 })).rejects.toThrow(
      /no batch in epoch 2; an iterator can be consumed only once/,
    );
    dispose();
  });

  test('takes batches that come asynchronously', async () => {
    async function* slowly() {
      for (const batch of firstBatches(task, 4, 2)) {
        await new Promise(setImmediate);
        yield batch;
      }
    }
    const { trainer, dispose } = setup();
    const result = await trainer.fit(() => slowly(), { epochs: 2 });
    expect(result.steps).toBe(4);
    dispose();
  });

  test('tells samples of the model that is being trained', async () => {
    const { trainer, recorder, dispose, model } = setup({
      samples: ['twenty one', ''],
      tokenizer: task.tokenizer,
    });
    await trainer.fit(firstBatches(task, 4, 2), {
      epochs: 1,
      validation: firstBatches(task, 2, 2),
    });
    const { specialIds, tokenizer } = task;
    const translator = new Translator(model.eval(), { tokenizer, specialIds });
    const [output] = await translator.translate(['twenty one']);
    expect(recorder.messages).toEqual([`  twenty one → ${output}`, '   → ']);
    dispose();
  });
});

describe('options', () => {
  test('that are unknown or make no sense are refused with what is wrong', () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const make = (options: object) => () =>
      new Trainer(model, { specialIds: task.specialIds, reporter: null, ...options });
    expect(make({ learning_rate: 1 })).toThrow(
      /unknown option "learning_rate"; valid options: accumulate/,
    );
    expect(make({ specialIds: undefined })).toThrow(
      /specialIds must be { pad, bos, eos }, got undefined/,
    );
    expect(make({ specialIds: { pad: 2, bos: 1, eos: 2 } })).toThrow(/pad and eos are both 2/);
    expect(make({ specialIds: { pad: 0, bos: 1, eos: 99_999 } })).toThrow(
      /eos must be an id from 0 to/,
    );
    expect(make({ accumulate: 0 })).toThrow(/accumulate must be an integer at least 1, got 0/);
    expect(make({ clip: 0 })).toThrow(/clip must be a number above 0, got 0/);
    expect(make({ nonFinite: 'ignore' })).toThrow(/nonFinite must be 'stop' or 'skip'/);
    expect(make({ schedule: () => 1, learningRate: 1 })).toThrow(
      /either schedule, or learningRate/,
    );
    expect(make({ samples: ['a'] })).toThrow(/samples need the tokenizer/);
    model.dispose();
  });

  test('a tokenizer with more ids than the model is refused with both numbers', () => {
    const model = tinyModel(10);
    expect(
      () =>
        new Trainer(model, { specialIds: { pad: 0, bos: 1, eos: 2 }, tokenizer: task.tokenizer }),
    ).toThrow(`the tokenizer has ${task.tokenizer.vocabSize} ids, the model only 10`);
    model.dispose();
  });
});
