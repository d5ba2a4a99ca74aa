/**
 * Steps that are recorded and replayed. What stands for a CUDA graph here runs the same work again on
 * the same tensors: whatever a step takes from elsewhere would be missing, or old, when it is replayed.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  Adam,
  batches,
  manualSeed,
  memory,
  noGrad,
  Trainer,
  TranslationDataset,
  type Batch,
  type PackedSequences,
  type Tensor,
  type Transformer,
} from 'torchformer';
import { CapturedSteps } from '../../../../dist/train/steps/capturedSteps.js';
import { inScope } from '../../../../dist/train/inScope.js';
import { QueuedSteps } from '../../../../dist/train/steps/queuedSteps.js';
import { bucketOf, BucketInputs } from '../../../../dist/train/steps/stepBuckets.js';
import type { StepOutcome, Steps } from '../../../../dist/train/steps/steps.js';
import { stepSettings } from '../../../support/stepSettings.js';
import {
  largestDifference,
  raggedPairs,
  tinyModel,
  tinyTask,
  weightsOf,
  type TinyTask,
} from '../../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask(raggedPairs);
});

function listOfBatches(batchSize = 4): Batch[] {
  const { specialIds, vocabSize, pairs } = task.dataset;
  const part = new TranslationDataset(pairs.slice(0, 32), { specialIds, vocabSize });
  return [...batches(part, { batchSize })];
}

interface Count {
  recorded: number;
  replayed: number;
}

/** Recording does nothing: what `work` did is undone. Replaying does it again. */
function standIn(model: Transformer, optimizer: Adam, count: Count) {
  return (_device: string, work: () => void) => {
    count.recorded++;
    const state = () => [...model.parameters(), ...optimizer.stateDict().tensors.values()];
    const before = state().map((one: Tensor) => one.detach().clone());
    work();
    noGrad(() => state().forEach((one, index) => one.detach().copy_(before[index] as Tensor)));
    const replay = () => {
      count.replayed++;
      work();
    };
    return { replay, dispose: () => undefined };
  };
}

interface Run {
  outcomes: StepOutcome[];
  weights: ReturnType<typeof weightsOf>;
  count: Count;
}

async function train(
  kind: 'queued' | 'captured',
  { clip = Infinity, faultAt = -1, rounds = 3, smoothing = {} } = {},
): Promise<Run> {
  const model = tinyModel(task.tokenizer.vocabSize, { dropout: 0.1, attentionDropout: 0.1 }).to({
    dtype: 'float64',
  });
  const optimizer = new Adam(model.parameters());
  const count = { recorded: 0, replayed: 0 };
  let taken = 0;
  const settings = {
    ...stepSettings(model, task.specialIds, optimizer),
    ...smoothing,
    clip,
    schedule: (step: number) => 1e-3 * step,
    stepsTaken: () => taken,
  };
  const steps: Steps =
    kind === 'queued'
      ? new QueuedSteps(settings, false)
      : new CapturedSteps(settings, false, standIn(model, optimizer, count));
  const outcomes: StepOutcome[] = [];
  const note = (found: readonly StepOutcome[]) => {
    taken += found.filter((one) => one.kind === 'taken').length;
    outcomes.push(...found);
  };
  manualSeed(7);
  const list = listOfBatches();
  const bias = model.generator.proj.bias!;
  for (let step = 0; step < rounds * list.length; step++) {
    const good = bias.detach().clone();
    if (step === faultAt) noGrad(() => bias.fill_(NaN));
    note(await inScope(() => steps.take([list[step % list.length] as Batch])));
    if (step === faultAt) noGrad(() => bias.copy_(good));
  }
  note(await steps.finish());
  steps.dispose();
  return { outcomes, weights: weightsOf(model), count };
}

function expectAlike(one: Run, other: Run): void {
  expect(other.outcomes.map(({ kind }) => kind)).toEqual(one.outcomes.map(({ kind }) => kind));
  one.outcomes.forEach((outcome, index) => {
    const found = other.outcomes[index] as StepOutcome;
    if (outcome.kind !== 'taken' || found.kind !== 'taken') return;
    expect(found.learningRate).toBe(outcome.learningRate);
    expect(found.lossSum / outcome.lossSum).toBeCloseTo(1, 6);
  });
  expect(largestDifference(one.weights, other.weights)).toBeLessThan(1e-6);
}

describe('captured steps', () => {
  it('are the steps that are not: losses, rates, dropout and weights', async () => {
    const captured = await train('captured');
    expectAlike(await train('queued'), captured);
    const { recorded, replayed } = captured.count;
    // Few sizes: each is computed once, recorded at its second batch and replayed from then on.
    expect(recorded).toBeGreaterThan(0);
    expect(recorded).toBeLessThan(6);
    expect(replayed).toBe(captured.outcomes.length - recorded);
  });

  it.each(['crossEntropy', 'klDivergence'] as const)('smooth labels: %s', async (form) => {
    const smoothing = { labelSmoothing: 0.1, smoothingForm: form };
    const queued = await train('queued', { smoothing });
    expectAlike(queued, await train('captured', { smoothing }));
    const sharp = await train('queued');
    expect(largestDifference(queued.weights, sharp.weights)).toBeGreaterThan(1e-4);
  });

  it('clip gradients', async () => {
    expectAlike(await train('queued', { clip: 0.05 }), await train('captured', { clip: 0.05 }));
  });

  it('leave a step with a fault out, wherever it is replayed', async () => {
    const options = { faultAt: 17 };
    const captured = await train('captured', options);
    expect(captured.outcomes[17]).toMatchObject({ kind: 'skipped', fault: 'the loss is NaN' });
    expectAlike(await train('queued', options), captured);
  });

  it('compute a batch without its packed form as it comes', async () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const optimizer = new Adam(model.parameters());
    const count = { recorded: 0, replayed: 0 };
    const steps = new CapturedSteps(
      stepSettings(model, task.specialIds, optimizer),
      true,
      standIn(model, optimizer, count),
    );
    const plain = listOfBatches().map((batch) => ({ ...batch }));
    for (const batch of plain) await steps.take([batch]);
    for (const batch of plain) await steps.take([batch]);
    expect(await steps.finish()).toHaveLength(1);
    expect(count).toEqual({ recorded: 0, replayed: 0 });
    steps.dispose();
  });

  it('free what they keep', async () => {
    await train('captured', { rounds: 2 });
    const { tensors } = memory();
    const model = tinyModel(task.tokenizer.vocabSize);
    const optimizer = new Adam(model.parameters());
    const settings = stepSettings(model, task.specialIds, optimizer);
    const steps = new CapturedSteps(
      settings,
      true,
      standIn(model, optimizer, { recorded: 0, replayed: 0 }),
    );
    const list = listOfBatches();
    for (const batch of [...list, ...list]) {
      await inScope(() => inScope(() => steps.take([batch])));
    }
    await steps.finish();
    steps.dispose();
    optimizer.zeroGrad();
    optimizer.dispose();
    model.dispose();
    for (const batch of list) batch.dispose();
    expect(memory().tensors - tensors).toBeLessThanOrEqual(0);
  });
});

describe('the bucket of a batch', () => {
  it('is at most an eighth larger, and the same for batches nearly alike', () => {
    for (const { packed } of listOfBatches()) {
      const bucket = bucketOf(packed!);
      expect(bucket.srcTokens).toBeGreaterThanOrEqual(packed!.srcSequences.tokens);
      expect(bucket.srcTokens % 16).toBe(0);
    }
    expect(
      new Set(listOfBatches().map(({ packed }) => Object.values(bucketOf(packed!)).join())).size,
    ).toBeLessThan(listOfBatches().length);
  });

  it('is filled with pad ids in sequences that are no longer than the longest may be', () => {
    const { packed } = listOfBatches(3).find(
      (batch) => batch.packed!.src.numel < bucketOf(batch.packed!).srcTokens,
    )!;
    const inputs = new BucketInputs(bucketOf(packed!), task.specialIds.pad, 'cpu');
    const { vocabSize } = task.tokenizer;
    inputs.load(packed!, { src: vocabSize, tgt: vocabSize });
    const { bucket, srcSequences } = inputs;
    const offsets = srcSequences.offsets.toArray() as number[];
    expect(offsets).toHaveLength(bucket.sequences + 1);
    expect(offsets.at(-1)).toBe(bucket.srcTokens);
    const lengths = offsets.slice(1).map((end, index) => end - (offsets[index] as number));
    expect(Math.max(...lengths)).toBeLessThanOrEqual(bucket.srcLongest);
    const real = packed!.src.toArray() as number[];
    const ids = inputs.src.toArray() as number[];
    expect(ids.slice(0, real.length)).toEqual(real);
    expect(new Set(ids.slice(real.length))).toEqual(new Set([task.specialIds.pad]));
    inputs.dispose();
  });
});

describe('what a recording could not see is looked at before', () => {
  const stepsOf = (model: Transformer, record?: ConstructorParameters<typeof CapturedSteps>[2]) => {
    const optimizer = new Adam(model.parameters());
    const settings = stepSettings(model, task.specialIds, optimizer);
    const standingIn = standIn(model, optimizer, { recorded: 0, replayed: 0 });
    return new CapturedSteps(settings, true, record ?? standingIn);
  };

  it('no sequence grows beyond the table of positions', async () => {
    const [batch] = listOfBatches() as [Batch];
    const maxLen = Math.max(batch.packed!.srcSequences.longest, batch.packed!.tgtSequences.longest);
    const steps = stepsOf(tinyModel(task.tokenizer.vocabSize, { maxLen }));
    for (let time = 0; time < 3; time++) await steps.take([batch]);
    expect(await steps.finish()).toMatchObject([{ kind: 'taken' }]);
    steps.dispose();
  });

  it('an id outside the vocabulary, in a batch of a size that is recorded', async () => {
    const steps = stepsOf(tinyModel(task.tokenizer.vocabSize));
    const [batch] = listOfBatches() as [Batch];
    for (let time = 0; time < 3; time++) await steps.take([batch]);
    const { src, tgtY, srcSequences, tgtSequences } = batch.packed!;
    // The third token of the second pair, wherever the first pair ends.
    const third = ({ offsets }: PackedSequences) => Number(offsets.select(0, 1).item()) + 2;
    const kept = src.clone();
    noGrad(() => src.narrow(0, third(srcSequences), 1).fill_(5000));
    await expect(steps.take([batch])).rejects.toThrow(/src holds the id 5000 at \[1, 2\]/);
    noGrad(() => src.copy_(kept));
    noGrad(() => tgtY.narrow(0, third(tgtSequences), 1).fill_(5000));
    await expect(steps.take([batch])).rejects.toThrow(/tgtY holds the id 5000 at \[1, 2\]/);
    steps.dispose();
  });

  it('a recording that fails leaves no tensor behind', async () => {
    const steps = stepsOf(tinyModel(task.tokenizer.vocabSize), () => {
      throw new Error('cannot be recorded');
    });
    const [batch] = listOfBatches() as [Batch];
    await inScope(() => steps.take([batch]));
    await expect(inScope(() => steps.take([batch]))).rejects.toThrow('cannot be recorded');
    const { tensors } = memory();
    await expect(inScope(() => steps.take([batch]))).rejects.toThrow('cannot be recorded');
    expect(memory().tensors).toBe(tensors);
    steps.dispose();
  });
});

describe('Trainer with graphs', () => {
  const make = (options: object) =>
    new Trainer(tinyModel(task.tokenizer.vocabSize), {
      specialIds: task.specialIds,
      reporter: null,
      graphs: true,
      ...options,
    });

  it('trains on the CPU as without', async () => {
    const { history } = await make({}).fit(listOfBatches(), { epochs: 1 });
    expect(history.steps).toHaveLength(8);
  });

  it.each([
    [{ accumulate: 2 }, /graphs cannot record steps with accumulate 2/],
    [{ dtype: 'float16' }, /graphs cannot record steps with dtype 'float16'/],
    [{ graphs: 1 }, /graphs must be true or false, got 1/],
  ])('refuses %j', (options, message) => {
    expect(() => make(options)).toThrow(message);
  });
});
