/** Training in float16: a scaled loss, and what becomes of overflows. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  AdamW,
  noGrad,
  SGD,
  Trainer,
  type TrainerOptions,
  type TrainingListener,
} from 'torchformer';
import { LossScale } from '../../../dist/train/steps/lossScale.js';
import { firstBatches, tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

async function losses(options: Partial<TrainerOptions>, epochs = 4): Promise<number[]> {
  const model = tinyModel(task.tokenizer.vocabSize);
  const { specialIds } = task;
  const trainer = new Trainer(model, { specialIds, reporter: null, ...options });
  const { history } = await trainer.fit([...firstBatches(task, 24, 8)], { epochs });
  return history.steps.map(({ loss }) => loss);
}

describe('the loss scale', () => {
  it('halves at every overflow, and at 1 there is nothing left to cure', () => {
    const scale = new LossScale();
    expect(scale.value).toBe(65536);
    for (let halvings = 0; halvings < 16; halvings++) expect(scale.afterOverflow()).toBe(true);
    expect(scale.value).toBe(1);
    expect(scale.afterOverflow()).toBe(false);
  });

  it('doubles after 2000 good steps in a row', () => {
    const scale = new LossScale();
    for (let step = 0; step < 1999; step++) scale.afterGoodStep();
    scale.afterOverflow();
    for (let step = 0; step < 1999; step++) scale.afterGoodStep();
    expect(scale.value).toBe(32768);
    scale.afterGoodStep();
    expect(scale.value).toBe(65536);
  });
});

describe('Trainer with dtype float16', () => {
  it('has the losses of float32, within the format', async () => {
    const exact = await losses({});
    const found = await losses({ dtype: 'float16' });
    expect(found).toHaveLength(exact.length);
    found.forEach((loss, step) => {
      expect(Math.abs(loss / (exact[step] as number) - 1)).toBeLessThan(2e-3);
    });
    expect(found).not.toEqual(exact);
  });

  it('trains on where gradients overflow, with a smaller scale', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const trainer = new Trainer(model, {
      specialIds: task.specialIds,
      dtype: 'float16',
      reporter: null,
      // Told of nothing: an overflow is no fault.
      nonFinite: 'stop',
    });
    // Gradients of 65536 times this loss are beyond 65504 in the last layers.
    noGrad(() => model.generator.proj.weight.mul_(40));
    const { history } = await trainer.fit([...firstBatches(task, 24, 4)], { epochs: 3 });
    const [first, second, third] = history.epochs.map(({ skippedSteps }) => skippedSteps);
    expect(first).toBeGreaterThan(0);
    expect(third).toBeLessThanOrEqual(second as number);
    expect(history.steps.length + (first as number)).toBeLessThanOrEqual(18);
    expect(history.steps.at(-1)?.loss).toBeLessThan(history.steps[0]?.loss as number);
    expect(model.parameters().every(({ dtype }) => dtype === 'float32')).toBe(true);
  });

  it('stops at a loss that is not finite, which no scale cures', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    noGrad(() => model.generator.proj.bias?.fill_(NaN));
    const { specialIds } = task;
    const trainer = new Trainer(model, { specialIds, dtype: 'float16', reporter: null });
    await expect(trainer.fit([...firstBatches(task, 8, 4)], { epochs: 1 })).rejects.toMatchObject({
      code: 'ERR_NON_FINITE',
      message: expect.stringContaining('the loss is NaN in epoch 1, batch 1') as string,
    });
  });

  it('takes an AdamW, and no optimizer that cannot scale gradients', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const { specialIds } = task;
    const options = { specialIds, dtype: 'float16' as const, reporter: null };
    const trainer = new Trainer(model, { ...options, optimizer: new AdamW(model.parameters()) });
    await trainer.fit([...firstBatches(task, 8, 4)], { epochs: 1 });
    expect(trainer.history.steps).toHaveLength(2);
    const optimizer = new SGD(model.parameters(), { lr: 0.1 });
    expect(() => new Trainer(model, { ...options, optimizer })).toThrow(
      /dtype 'float16' scales the loss, which only Adam and AdamW can undo/,
    );
  });
});

it('every step is reported, the last one too, though its numbers come late', async () => {
  const model = tinyModel(task.tokenizer.vocabSize);
  const seen: number[] = [];
  const reporter: TrainingListener = { step: ({ batch }) => void seen.push(batch) };
  const trainer = new Trainer(model, { specialIds: task.specialIds, dtype: 'float16', reporter });
  await trainer.fit([...firstBatches(task, 12, 4)], { epochs: 2 });
  expect(seen).toEqual([1, 2, 3, 1, 2, 3]);
});

it('a step that was taken counts when the source of batches fails behind it', async () => {
  const model = tinyModel(task.tokenizer.vocabSize);
  const trainer = new Trainer(model, {
    specialIds: task.specialIds,
    dtype: 'float16',
    reporter: null,
  });
  const good = [...firstBatches(task, 12, 4)];
  function* failing() {
    yield* good;
    throw new Error('the disk is gone');
  }
  await expect(trainer.fit(failing(), { epochs: 1 })).rejects.toThrow('the disk is gone');
  expect(trainer.history.steps).toHaveLength(good.length);
});
