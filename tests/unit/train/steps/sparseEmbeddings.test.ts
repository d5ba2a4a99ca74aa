/** Embeddings with gradients of the rows in use train as with those of all rows. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  Adafactor,
  Adam,
  AdamW,
  decayGroups,
  Embedding,
  SGD,
  type TrainingOptimizer,
  type Transformer,
} from 'torchformer';
import { useSparseEmbeddings } from '../../../../dist/train/steps/sparseEmbeddings.js';
import { ImmediateSteps } from '../../../../dist/train/steps/steps.js';
import { stepSettings } from '../../../support/stepSettings.js';
import {
  firstBatches,
  largestDifference,
  tinyModel,
  tinyTask,
  weightsOf,
  type TinyTask,
} from '../../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

const sparseCount = (model: Transformer) =>
  model.modules().filter((one) => one instanceof Embedding && one.sparseGradient).length;

async function lossesOf(isSparse: boolean) {
  const model = tinyModel(task.tokenizer.vocabSize).to({ dtype: 'float64' });
  const optimizer = new Adafactor(model.parameters(), { lr: 0.05 });
  const restore = isSparse ? useSparseEmbeddings(model, optimizer) : () => undefined;
  expect(sparseCount(model)).toBe(isSparse ? 2 : 0);
  const steps = new ImmediateSteps({
    ...stepSettings(model, task.specialIds),
    optimizer,
    clip: 1,
  });
  const losses: number[] = [];
  const [batch] = firstBatches(task, 8, 8);
  for (let step = 0; step < 30; step++) {
    const [outcome] = batch === undefined ? [] : await steps.take([batch]);
    if (outcome?.kind === 'taken') losses.push(outcome.lossSum / outcome.tokens);
  }
  restore();
  expect(sparseCount(model)).toBe(0);
  // The gradient of a key's bias is 0 but for rounding noise, which the optimizer makes as large as others.
  const weights = Object.entries(weightsOf(model)).filter(
    ([name]) => !/linears\.1\.bias/.test(name),
  );
  return { losses, weights: Object.fromEntries(weights) };
}

describe('sparse gradients of embeddings', () => {
  it('give the losses and weights of dense ones with Adafactor, which learns a batch', async () => {
    const [sparse, dense] = [await lossesOf(true), await lossesOf(false)];
    sparse.losses.forEach((loss, step) => expect(loss).toBeCloseTo(dense.losses[step] ?? NaN, 8));
    expect(largestDifference(sparse.weights, dense.weights)).toBeLessThan(1e-8);
    expect(sparse.losses).toHaveLength(30);
    expect(sparse.losses.at(-1)).toBeLessThan((sparse.losses[0] ?? 0) / 2);
  });

  it.each<[string, (model: Transformer) => TrainingOptimizer, number]>([
    ['Adam', (model) => new Adam(model.parameters()), 2],
    ['Adam whose decay changes all rows', (model) => new AdamW(model.parameters()), 0], // prettier-ignore
    [
      'AdamW that leaves embeddings out of the decay',
      (model) => new AdamW(decayGroups(model, { weightDecay: 0.1, embeddings: false })),
      2,
    ],
    ['SGD, which would make them dense', (model) => new SGD(model.parameters()), 0],
  ])('are used with %s where they stay sparse', (_, make, expected) => {
    const model = tinyModel(task.tokenizer.vocabSize);
    useSparseEmbeddings(model, make(model));
    expect(sparseCount(model)).toBe(expected);
  });

  it('are not used with an optimizer of the caller’s own kind', () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const own = { lr: 1, zeroGrad: () => undefined, stepAsync: () => Promise.resolve() };
    useSparseEmbeddings(model, own);
    expect(sparseCount(model)).toBe(0);
  });
});
