import { beforeAll, describe, expect, test } from 'vitest';
import {
  Adafactor,
  Adam,
  batches,
  estimateTraining,
  getRngState,
  makeBatch,
  manualSeed,
  memory,
  SGD,
  tidy,
  tokenLossSum,
  TorchError,
  Trainer,
  type BatchSource,
  type EstimateTrainingOptions,
  type Transformer,
} from 'torchformer';
import { raggedPairs, tinyModel, tinyTask, weightsOf } from '../../../support/tinyTranslation.js';
import type { TinyTask } from '../../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask(raggedPairs);
});

const makeTiny = (options = {}) => tinyModel(task.tokenizer.vocabSize, options);
const padOf = () => task.specialIds.pad;
const shuffled = (batchSize = 10) =>
  batches(task.dataset, { batchSize, shuffle: true, seed: 1, epoch: 1 });

function estimate(
  model: Transformer,
  source: BatchSource,
  options: Partial<EstimateTrainingOptions> = {},
) {
  return estimateTraining(model, source, { pad: padOf(), ...options });
}

async function shortage(work: Promise<unknown>): Promise<TorchError> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TorchError);
  expect((error as TorchError).code).toBe('ERR_OUT_OF_MEMORY');
  return error as TorchError;
}

describe('memory', () => {
  test('counts 4 bytes for each float32 parameter, and those that are trained', async () => {
    const model = makeTiny();
    const count = model.parameterCount();
    model.generator.proj.weight.requiresGrad = false;
    const { parameters, memory } = await estimate(model, shuffled(), { measure: false });
    expect(parameters).toEqual({
      all: count,
      trainable: count - model.generator.proj.weight.numel,
    });
    const buffers = model.buffers().reduce((sum, { numel }) => sum + 4 * numel, 0);
    expect(memory.weights).toBe(4 * count + buffers);
  });

  test.each([
    ['Adam', (model: Transformer) => new Adam(model.parameters())],
    ['Adafactor', (model: Transformer) => new Adafactor(model.parameters())],
    ['SGD', (model: Transformer) => new SGD(model.parameters())],
    ['SGD', (model: Transformer) => new SGD(model.parameters(), { momentum: 0.9 })],
  ])('foretells the state that %s has after a step', async (name, make) => {
    const model = makeTiny();
    const optimizer = make(model);
    const { memory } = await estimate(model, shuffled(), { optimizer, measure: false });
    expect(memory.optimizerName).toBe(name);
    tidy(() => {
      const [batch] = [...batches(task.dataset, { batchSize: 50 })];
      if (batch === undefined) throw new Error('no batch');
      tokenLossSum(model, batch, padOf()).backward();
      optimizer.step();
    });
    const state = [...optimizer.stateDict().tensors.values()];
    expect(memory.optimizer).toBe(state.reduce((sum, { numel }) => sum + 4 * numel, 0));
  });

  test('Adam takes two numbers a parameter, and a step count for each tensor', async () => {
    const model = makeTiny();
    const { memory } = await estimate(model, shuffled(), { measure: false });
    const tensors = model.parameters().length;
    expect(memory.optimizer).toBe(8 * model.parameterCount() + 4 * tensors);
  });

  test('averages take the memory of the trained parameters', async () => {
    const model = makeTiny();
    const given = { averaging: { decay: 0.999 }, measure: false };
    const { memory } = await estimate(model, shuffled(), given);
    expect(memory.averages).toBe(4 * model.parameterCount());
  });

  test('the total is the sum of its parts', async () => {
    const { memory } = await estimate(makeTiny(), shuffled(), { averaging: { decay: 0.9 } });
    const { weights, gradients, optimizer, averages, activations } = memory;
    expect(memory.total).toBe(
      weights + gradients + (optimizer ?? NaN) + averages + (activations ?? NaN),
    );
  });

  test('activations are what is held between the forward and the backward pass', async () => {
    const model = makeTiny();
    const source = batches(task.dataset, { batchSize: 50 });
    const { memory: estimated } = await estimate(model, source);
    const [batch] = [...source];
    if (batch === undefined) throw new Error('no batch');
    const before = memory().nativeBytes;
    const loss = tokenLossSum(model, batch, padOf(), { scale: 1 / batch.ntokens });
    const held = memory().nativeBytes - before;
    loss.dispose();
    batch.dispose();
    expect(estimated.activations).toBeGreaterThan(0.8 * held);
    expect(estimated.activations).toBeLessThan(1.2 * held);
  });

  test('the largest batch is the one with the most tokens', async () => {
    const ids = (length: number) => [1, ...Array.from({ length }, () => 5), 2];
    const pair = (length: number) => ({ src: ids(length), tgt: ids(length), row: 1 });
    const source = [2, 9, 4].map((length) => makeBatch([pair(length), pair(length)], padOf()));
    const { memory } = await estimate(makeTiny(), source);
    // Two sources of 11 ids, two targets of 10 to predict.
    expect(memory.largestBatch).toEqual({ pairs: 2, tokens: 42, wasRun: true });
  });

  test('without measurement nothing is run', async () => {
    const { memory, time } = await estimate(makeTiny(), shuffled(), { measure: false });
    expect(memory).toMatchObject({ activations: null, largestBatch: null });
    expect(time).toBeNull();
  });
});

describe('time', () => {
  test('an epoch takes the time of its tokens and of its updates', async () => {
    const { time } = await estimate(makeTiny(), shuffled(10), { accumulate: 2 });
    if (time === null) throw new Error('not measured');
    const tokens = task.dataset.pairs.reduce(
      (sum, { src, tgt }) => sum + src.length + tgt.length - 1,
      0,
    );
    // Five batches, two a step.
    expect(time.stepsPerEpoch).toBe(3);
    expect(time.token).toBeGreaterThan(0);
    expect(time.update).toBeGreaterThan(0);
    expect(time.epoch).toBeCloseTo(tokens * time.token + 3 * time.update, 9);
  });

  test.each([
    [{ epochs: 4 }, (epoch: number) => 4 * epoch],
    [{ steps: 20 }, (epoch: number) => 4 * epoch],
    [{ epochs: 4, steps: 5 }, (epoch: number) => epoch],
    [{ epochs: 1e9, minutes: 2 }, () => 120],
    [{}, () => null],
  ])('with %o, training ends at the first limit', async (limits, expected) => {
    const { time } = await estimate(makeTiny(), shuffled(10), limits);
    if (time === null) throw new Error('not measured');
    const total = expected(time.epoch);
    if (total === null) expect(time.total).toBeNull();
    else expect(time.total).toBeCloseTo(total, 9);
  });
});

describe('nothing changes', () => {
  test('training after an estimate equals training without it, to the bit', async () => {
    const run = async (isEstimated: boolean) => {
      const model = makeTiny({ dropout: 0.2, attentionDropout: 0.2 });
      const optimizer = new Adam(model.parameters(), { lr: 1e-2 });
      const { specialIds } = task;
      using trainer = new Trainer(model, { specialIds, optimizer, reporter: null });
      if (isEstimated) await estimate(model, shuffled(), { optimizer });
      await trainer.fit(batches(task.dataset, { batchSize: 10, shuffle: true }), { epochs: 2 });
      return weightsOf(model);
    };
    expect(await run(true)).toEqual(await run(false));
  });

  test('random state, modes, gradients and live tensors are as before', async () => {
    const model = makeTiny({ dropout: 0.2 });
    model.eval();
    model.encoder.train();
    tidy(() => {
      const [batch] = [...batches(task.dataset, { batchSize: 50 })];
      if (batch !== undefined) tokenLossSum(model, batch, padOf()).backward();
    });
    manualSeed(5);
    const state = () =>
      tidy(() => ({
        random: getRngState().toArray(),
        modes: model.modules().map(({ training }) => training),
        gradients: model.parameters().map(({ grad }) => grad?.toArray()),
        weights: model.parameters().map((weight) => weight.detach().toArray()),
      }));
    const before = state();
    // The first one loads what is loaded once.
    await estimate(model, shuffled());
    const tensors = memory().tensors;
    await estimate(model, shuffled());
    expect(memory().tensors).toBe(tensors);
    expect(state()).toEqual(before);
  });

  test('it is also so after an error in the model', async () => {
    const model = makeTiny();
    const before = memory().tensors;
    const unknownId = makeBatch([{ src: [1, 9999, 2], tgt: [1, 5, 2], row: 1 }], padOf());
    await expect(estimate(model, [unknownId])).rejects.toThrow(/9999/);
    unknownId.dispose();
    expect(memory().tensors).toBe(before);
    expect(model.parameters().every(({ grad }) => grad === null)).toBe(true);
  });

  test('batches that count their own passes do not lose one', async () => {
    const source = batches(task.dataset, { batchSize: 10, shuffle: true, seed: 3 });
    await estimate(makeTiny(), source);
    const first = [...source].flatMap(({ rows }) => rows);
    const fresh = batches(task.dataset, { batchSize: 10, shuffle: true, seed: 3 });
    expect(first).toEqual([...fresh].flatMap(({ rows }) => rows));
  });
});

describe('a run that does not fit', () => {
  test('is refused before anything is run if weights, gradients and state are too large', async () => {
    const source: BatchSource = () => {
      throw new Error('a batch was made');
    };
    const error = await shortage(estimate(makeTiny(), source, { availableMemory: 20_000 }));
    expect(error.message).toMatch(
      /^estimateTraining: training needs \d+\.\d kB of memory \(weights \d+\.\d \+ gradients \d+\.\d \+ Adam \d+\.\d\), but 20\.0 kB are available; choose the optimizer Adafactor or a smaller model$/,
    );
  });

  test('is refused before the largest batch is run, from an eighth of it', async () => {
    const model = makeTiny();
    const rowsRun: number[] = [];
    model.generator.registerForwardPreHook((_module, inputs) => {
      const [vectors] = inputs as [{ shape: readonly number[] }];
      rowsRun.push(vectors.shape[0] ?? 0);
      return undefined;
    });
    const source = batches(task.dataset, { batchSize: 50 });
    const { memory } = await estimate(model, source);
    const largest = Math.max(...rowsRun.splice(0));
    const half = memory.total - (memory.activations ?? 0) / 2;
    const error = await shortage(estimate(model, source, { availableMemory: half }));
    expect(error.message).toContain('extrapolated from a part');
    expect(error.message).toContain('batches of fewer tokens with a larger accumulate');
    // A pair, and an eighth.
    expect(rowsRun).toHaveLength(2);
    expect(Math.max(...rowsRun)).toBeLessThan(largest / 4);
  });

  test('one that just fits is not', async () => {
    const source = batches(task.dataset, { batchSize: 50 });
    const { memory } = await estimate(makeTiny(), source);
    const availableMemory = 1.5 * memory.total;
    const again = await estimate(makeTiny(), source, { availableMemory });
    expect(again.memory.available).toBe(availableMemory);
  });
});

describe('arguments', () => {
  test('batches that can be iterated only once are refused: training needs them', async () => {
    const once = shuffled()[Symbol.iterator]() as unknown as BatchSource;
    await expect(estimate(makeTiny(), once)).rejects.toThrow(/can be iterated only once/);
  });

  test('there must be a batch', async () => {
    await expect(estimate(makeTiny(), [])).rejects.toThrow(/there is no batch/);
  });

  test('a function of the epoch and a list of batches are sources too', async () => {
    const listed = [...shuffled()];
    const sizes = await Promise.all(
      [listed, () => listed.values(), shuffled()].map(async (source) => {
        const { memory } = await estimate(makeTiny(), source, { measure: true });
        return memory.largestBatch;
      }),
    );
    expect(sizes[0]).toEqual(sizes[2]);
  });

  test('an unknown option is an error', async () => {
    const options = { batchTokens: 3 } as object;
    await expect(estimate(makeTiny(), shuffled(), options)).rejects.toThrow(/batchTokens/);
  });
});
