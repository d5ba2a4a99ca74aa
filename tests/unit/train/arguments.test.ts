import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Adam,
  BestModel,
  evaluate,
  historyJson,
  lossCurve,
  ProgressBar,
  SGD,
  TokenMean,
  tokenLossSum,
  Trainer,
  type EpochRecord,
  type FitOptions,
  type TrainerOptions,
  type Transformer,
} from 'torchformer';
import { firstBatches, tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let model: Transformer;
let folder: string;
beforeAll(async () => {
  task = await tinyTask();
  model = tinyModel(task.tokenizer.vocabSize);
  folder = mkdtempSync(join(tmpdir(), 'torchformer-arguments-'));
});
afterAll(() => {
  model.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function makeTrainer(options: object = {}, of: Transformer = model): Trainer {
  return new Trainer(of, { specialIds: task.specialIds, reporter: null, ...options });
}

/** What makes `fit` run one epoch of two steps. */
const oneEpoch = { epochs: 1 };

describe('new Trainer', () => {
  test.each([
    ['null', null, 'Trainer: model must be a Transformer, as returned by makeModel(…), got null'],
    ['{}', {}, 'Trainer: model must be a Transformer, as returned by makeModel(…), got an Object'],
    ['its class', Trainer, 'got the function Trainer'],
  ])('refuses %s as a model', (_, value, message) => {
    const make = () => makeTrainer({}, value as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });

  test.each([
    ['no options', undefined, 'Trainer: options with specialIds are required, got undefined'],
    ['null', null, 'Trainer: options must be an object, got null'],
    ['a signal', new AbortController().signal, 'got an AbortSignal'],
  ])('refuses %s for options', (_, options, message) => {
    const make = () => new Trainer(model, options as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });

  test.each<[string, unknown, string]>([
    ['specialIds', null, 'must be { pad, bos, eos }, got null'],
    ['reporter', {}, 'must be an object with methods such as step(event); events: start, step'],
    ['reporter', { batch() {} }, 'must be an object with methods such as step(event)'],
    ['reporter', 5, 'must be an object with methods such as step(event)'],
    ['reporter', { step: 1 }, 'reporter.step must be a function'],
    ['listeners', { step() {} }, 'must be an array of listeners'],
    ['listeners', [{}], 'listeners[0] must be an object with methods'],
    ['optimizer', {}, 'got an Object without the methods zeroGrad, stepAsync'],
    ['optimizer', 5, 'must be an optimizer such as new Adam(model.parameters()), got 5'],
    ['optimizer', Adam, 'got the function Adam'],
    ['schedule', 5, 'must be a function of the step such as noam({ dModel }), got 5'],
    ['learningRate', null, 'must be a finite number above 0, got null'],
    ['learningRate', '0.1', 'must be a finite number above 0, got the string "0.1"'],
    ['warmup', null, 'must be an integer, got null'],
    ['clip', '1', 'must be a number above 0, got the string "1"'],
    ['accumulate', '2', 'must be an integer, got the string "2"'],
    ['out', 5, 'must be a path, got 5'],
    ['out', '', 'must be a path, got the string ""'],
    ['out', null, 'must be a path, got null'],
    ['overwrite', 'yes', 'must be true or false, got the string "yes"'],
    ['samples', 'hello', 'must be an array of texts, got the string "hello"'],
    ['samples', [5], '[0] must be a text or { source, reference }, got 5'],
    ['samples', null, 'must be an array of texts, got null'],
    ['tokenizer', 5, 'must be a Tokenizer, got 5; make one with Tokenizer.fromFile'],
    ['tokenizer', {}, 'must be a Tokenizer, got an Object'],
    ['columns', 5, 'must be { source, target } with the names of two columns, got 5'],
    ['columns', { source: 5, target: 'de' }, '.source must be a string, got 5'],
    ['columns', { source: 'en' }, '.target must be a string, got undefined'],
  ])('refuses the option %s: %o', (name, value, message) => {
    const make = () => makeTrainer({ [name]: value });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`Trainer: ${name}`);
    expect(make).toThrow(message);
  });

  test.each([0, -1, NaN, Infinity])('refuses the learning rate %d', (learningRate) => {
    expect(() => makeTrainer({ learningRate })).toThrow(RangeError);
    expect(() => makeTrainer({ learningRate })).toThrow('Trainer: learningRate');
  });

  test('refuses an optimizer without a rate', () => {
    const optimizer = { zeroGrad() {}, stepAsync: async () => {} };
    expect(() => makeTrainer({ optimizer })).toThrow(
      'Trainer: optimizer.lr must be a finite number of at least 0, got undefined',
    );
  });

  test('refuses the optimizer of another model, which would train nothing', () => {
    const other = tinyModel(task.tokenizer.vocabSize);
    expect(() => makeTrainer({ optimizer: new SGD(other.parameters()) })).toThrow(
      'Trainer: optimizer has no trainable parameter of the model',
    );
    other.dispose();
  });
});

describe('Trainer.fit', () => {
  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'got undefined'],
    ['null', null, 'got null'],
    ['a number', 5, 'got 5'],
    ['a string', 'abc', 'got the string "abc"'],
    ['a plain object', {}, 'got an Object'],
    ['a function that returns nothing', () => undefined, 'got a function that returned undefined'],
    ['an async function', async () => [], 'a function that returned a Promise; await it first'],
  ])('refuses %s for batches', async (_, train, message) => {
    const fitting = makeTrainer().fit(train as never, oneEpoch);
    await expect(fitting).rejects.toThrow(TypeError);
    await expect(fitting).rejects.toThrow(
      'Trainer.fit: train must be an iterable of batches or a function that returns one',
    );
    await expect(fitting).rejects.toThrow(message);
  });

  test('tells how a dataset becomes batches', async () => {
    for (const train of [task.dataset, () => task.dataset]) {
      await expect(makeTrainer().fit(train as never, oneEpoch)).rejects.toThrow(
        'a TranslationDataset; split it into batches: batches(dataset, { shuffle: true })',
      );
    }
  });

  test.each<[string, unknown, string]>([
    ['null', null, 'batch 1 of train must be a Batch such as batches(dataset) yields, got null'],
    ['{}', {}, 'batch 1 of train.src must be a Tensor, got undefined'],
    ['a pair', { src: [1], tgt: [1] }, 'batch 1 of train.src must be a Tensor, got an array of 1'],
  ])('refuses %s as a batch', async (_, batch, message) => {
    const fitting = makeTrainer().fit([batch] as never, oneEpoch);
    await expect(fitting).rejects.toThrow(TypeError);
    await expect(fitting).rejects.toThrow(`Trainer.fit: ${message}`);
  });

  test('names the batch that is none by its number', async () => {
    const train = [...firstBatches(task, 4, 2), null];
    await expect(makeTrainer().fit(train as never, oneEpoch)).rejects.toThrow('batch 3 of train');
  });

  test.each<[string, unknown, string]>([
    ['no options', undefined, 'options with epochs, steps or minutes are required'],
    ['no epochs', {}, 'pass epochs, steps or minutes, or training would never end'],
    ['a number', 3, 'options must be an object, got 3'],
    ['signal 5', { epochs: 1, signal: 5 }, 'signal must be an AbortSignal, got 5'],
    [
      'the controller for its signal',
      { epochs: 1, signal: new AbortController() },
      'signal must be an AbortSignal, got an AbortController; pass its signal: controller.signal',
    ],
    ['validation null', { epochs: 1, validation: null }, 'validation must be an iterable'],
    ['validation 5', { epochs: 1, validation: 5 }, 'validation must be an iterable'],
  ])('refuses %s', async (_, options, message) => {
    const trainer = makeTrainer();
    const fitting = trainer.fit(firstBatches(task, 2, 1), options as FitOptions);
    await expect(fitting).rejects.toThrow(TypeError);
    await expect(fitting).rejects.toThrow(`Trainer.fit: ${message}`);
    expect(trainer.history.steps).toHaveLength(0);
  });

  test('makes no folder when it refuses', async () => {
    const out = join(folder, 'refused');
    await expect(makeTrainer({ out }).fit(null as never, oneEpoch)).rejects.toThrow(TypeError);
    expect(existsSync(out)).toBe(false);
  });

  test.each([
    [
      'nothing',
      undefined,
      TypeError,
      'schedule(1) must be a finite number of at least 0, got undefined',
    ],
    ['NaN', NaN, RangeError, 'schedule(1) must be a finite number of at least 0, got NaN'],
    ['-1', -1, RangeError, 'schedule(1) must be a finite number of at least 0, got -1'],
  ])('refuses a schedule that gives %s', async (_, rate, kind, message) => {
    const fitting = makeTrainer({ schedule: () => rate }).fit(firstBatches(task, 2, 1), oneEpoch);
    await expect(fitting).rejects.toThrow(kind);
    await expect(fitting).rejects.toThrow(message);
  });

  test('refuses a second call while the first one runs, and takes it afterwards', async () => {
    const trainer = makeTrainer();
    const first = trainer.fit(firstBatches(task, 2, 1), oneEpoch);
    await expect(trainer.fit(firstBatches(task, 2, 1), oneEpoch)).rejects.toThrow(
      'a fit of this trainer is still running; await it first',
    );
    expect((await first).epochs).toBe(1);
    expect((await trainer.fit(firstBatches(task, 2, 1), oneEpoch)).epochs).toBe(2);
    trainer.dispose();
  });
});

describe('the rate of an optimizer of one’s own', () => {
  async function ratesOf(options: Partial<TrainerOptions>, lr = 0.25) {
    const own = tinyModel(task.tokenizer.vocabSize);
    const optimizer = new SGD(own.parameters(), { lr });
    const trainer = makeTrainer({ optimizer, ...options }, own);
    await trainer.fit(firstBatches(task, 4, 1), oneEpoch);
    own.dispose();
    return trainer.history.steps.map(({ learningRate }) => learningRate);
  }

  test('stays without learningRate, warmup and schedule', async () => {
    expect(await ratesOf({})).toEqual([0.25, 0.25, 0.25, 0.25]);
  });

  test('may be 0', async () => {
    expect(await ratesOf({}, 0)).toEqual([0, 0, 0, 0]);
  });

  test('is what warmup grows to', async () => {
    expect(await ratesOf({ warmup: 2 })).toEqual([0.125, 0.25, 0.25, 0.25]);
  });

  test('gives way to learningRate and to schedule', async () => {
    expect(await ratesOf({ learningRate: 0.5 })).toEqual([0.5, 0.5, 0.5, 0.5]);
    expect(await ratesOf({ schedule: (step) => step / 8 })).toEqual([0.125, 0.25, 0.375, 0.5]);
  });

  test('stays that of each of its groups', async () => {
    const own = tinyModel(task.tokenizer.vocabSize);
    const [first, ...others] = own.parameters();
    const optimizer = new SGD([
      { params: [first as never], lr: 0.5 },
      { params: others, lr: 0.125 },
    ]);
    await makeTrainer({ optimizer }, own).fit(firstBatches(task, 2, 1), oneEpoch);
    expect(optimizer.paramGroups.map(({ lr }) => lr)).toEqual([0.5, 0.125]);
    own.dispose();
  });

  test('may be changed between two calls of fit', async () => {
    const own = tinyModel(task.tokenizer.vocabSize);
    const optimizer = new SGD(own.parameters(), { lr: 0.25 });
    const trainer = makeTrainer({ optimizer }, own);
    await trainer.fit(firstBatches(task, 1, 1), oneEpoch);
    optimizer.lr = 0.125;
    await trainer.fit(firstBatches(task, 1, 1), oneEpoch);
    expect(trainer.history.steps.map(({ learningRate }) => learningRate)).toEqual([0.25, 0.125]);
    own.dispose();
  });
});

describe('two trainings into one folder', () => {
  const lockOf = (out: string) => join(out, '.training.lock');

  test('in one process: the second is refused early, the first goes on', async () => {
    const out = join(folder, 'shared');
    const first = makeTrainer({ out }).fit(firstBatches(task, 2, 1), oneEpoch);
    const second = makeTrainer({ out, overwrite: true });
    await expect(second.fit(firstBatches(task, 2, 1), oneEpoch)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: `${out}: another Trainer in this process is training in this folder; choose another one`,
    });
    expect(second.history.steps).toHaveLength(0);
    expect((await first).epochs).toBe(1);
    expect(readdirSync(out).sort()).toEqual(['history.json', 'last', 'log.jsonl', 'loss.svg']);
    await second.fit(firstBatches(task, 2, 1), oneEpoch);
  });

  test('of another process that lives: refused, and its lock stays', async () => {
    const out = join(folder, 'foreign');
    mkdirSync(out);
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    try {
      writeFileSync(lockOf(out), `${other.pid} ${hostname()}`);
      const fitting = makeTrainer({ out }).fit(firstBatches(task, 2, 1), oneEpoch);
      await expect(fitting).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
      await expect(fitting).rejects.toThrow(`process ${other.pid} is training in this folder`);
      expect(existsSync(lockOf(out))).toBe(true);
    } finally {
      other.kill();
    }
  });

  const minutesAgo = new Date(Date.now() - 300_000);
  test.each([
    ['a process that has ended', `${2 ** 31 - 1} ${hostname()}`, new Date()],
    ['this process before a restart', `${process.pid} ${hostname()}`, minutesAgo],
    ['another host', '1 another-host', new Date()],
    ['another host long ago', '1 another-host', minutesAgo],
  ])('a lock left behind by %s counts for nothing', async (who, content, touched) => {
    const out = join(folder, who);
    mkdirSync(out);
    writeFileSync(lockOf(out), content);
    utimesSync(lockOf(out), touched, touched);
    await makeTrainer({ out }).fit(firstBatches(task, 2, 1), oneEpoch);
    expect(existsSync(lockOf(out))).toBe(false);
  });
});

test('a training whose folder another one has taken over saves nothing more', async () => {
  const out = join(folder, 'lost');
  const lock = join(out, '.training.lock');
  const trainer = makeTrainer({
    out,
    reporter: {
      step: () => writeFileSync(lock, '1 another-host'),
    },
  });
  await expect(trainer.fit(firstBatches(task, 2, 1), oneEpoch)).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: `${out}: another training run has taken over this folder; nothing more is saved`,
  });
  expect(readFileSync(lock, 'utf8')).toBe('1 another-host');
  expect(readdirSync(out).sort()).toEqual(['.training.lock', 'log.jsonl']);
});

describe('the other functions of training', () => {
  test.each<[string, () => unknown, string]>([
    ['evaluate: the model', () => evaluate(null as never, [], { pad: 0 }), 'evaluate: model'],
    ['evaluate: batches', () => evaluate(model, null as never, { pad: 0 }), 'evaluate: source'],
    ['evaluate: a batch', () => evaluate(model, [null] as never, { pad: 0 }), 'batch 1 of source'],
    ['evaluate: options', () => evaluate(model, [], undefined as never), 'options with pad'],
    ['evaluate: pad', () => evaluate(model, [], {} as never), 'pad must be an integer'],
    ['evaluate: signal', () => evaluate(model, [], { pad: 0, signal: 5 as never }), 'signal must'],
    ['evaluate: onBatch', () => evaluate(model, [], { pad: 0, onBatch: 5 as never }), 'onBatch'],
    ['tokenLossSum: model', () => tokenLossSum({} as never, {} as never, 0), 'tokenLossSum: model'],
    ['tokenLossSum: batch', () => tokenLossSum(model, null as never, 0), 'tokenLossSum: batch'],
    ['lossCurve: history', () => lossCurve(null as never), 'lossCurve: history'],
    ['lossCurve: its lists', () => lossCurve({} as never), 'lossCurve: history.steps'],
    ['lossCurve: title', () => lossCurve(emptyHistory(), { title: 5 as never }), 'title must be'],
    ['lossCurve: width', () => lossCurve(emptyHistory(), { width: null as never }), 'width must'],
    ['historyJson', () => historyJson(undefined as never), 'historyJson: history'],
    ['BestModel', () => new BestModel(5 as never), 'BestModel: best'],
    ['BestModel.consider', () => new BestModel().consider(1, null as never), 'loss must'],
    ['TokenMean.add', () => new TokenMean().add('1' as never, 1), 'TokenMean.add: lossSum'],
    ['ProgressBar: stream', () => new ProgressBar({} as never), 'without the method write'],
    ['ProgressBar: now', () => new ProgressBar(process.stderr, 5 as never), 'ProgressBar: now'],
  ])('%s', async (_, call, message) => {
    const calling = (async () => call())();
    await expect(calling).rejects.toThrow(TypeError);
    await expect(calling).rejects.toThrow(message);
  });

  test('a loss curve has room for 200,000 epochs', () => {
    const history = emptyHistory();
    for (let epoch = 1; epoch <= 200_000; epoch++) {
      history.epochs.push({ epoch, step: epoch, trainLoss: 1, validationLoss: 2 } as EpochRecord);
    }
    expect(lossCurve(history)).toMatch(/<\/svg>\n$/);
  });
});

function emptyHistory() {
  return { steps: [], validationBatches: [], validations: [], epochs: [] as EpochRecord[] };
}
