/** The steps of GPUs, which read their numbers late, come on the CPU to what the usual ones come to. */
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  Adam,
  AdamW,
  manualSeed,
  memory,
  noGrad,
  type Batch,
  type LabelSmoothingOptions,
  type Transformer,
} from 'torchformer';
import { inScope } from '../../../../dist/train/inScope.js';
import { QueuedSteps } from '../../../../dist/train/steps/queuedSteps.js';
import {
  ImmediateSteps,
  type StepOutcome,
  type Steps,
} from '../../../../dist/train/steps/steps.js';
import { stepSettings } from '../../../support/stepSettings.js';
import {
  firstBatches,
  largestDifference,
  tinyModel,
  tinyTask,
  weightsOf,
  type TinyTask,
} from '../../../support/tinyTranslation.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

interface Run {
  outcomes: StepOutcome[];
  weights: ReturnType<typeof weightsOf>;
}

interface RunOptions {
  make: (settings: ConstructorParameters<typeof QueuedSteps>[0]) => Steps;
  optimizer?: (model: Transformer) => Adam;
  clip?: number;
  /** Before the step of this number the weights get a NaN, after it they are put right again. */
  faultAt?: number;
  steps?: number;
  smoothing?: LabelSmoothingOptions;
}

async function train({
  make,
  optimizer,
  clip = Infinity,
  faultAt,
  steps = 6,
  smoothing,
}: RunOptions) {
  // Adam turns rounding noise in gradients that are 0 into whole steps: not in float64.
  const model = tinyModel(task.tokenizer.vocabSize, { dropout: 0.1 }).to({ dtype: 'float64' });
  const adam = optimizer?.(model) ?? new Adam(model.parameters());
  const outcomes: StepOutcome[] = [];
  let taken = 0;
  const runner = make({
    ...stepSettings(model, task.specialIds, adam),
    ...smoothing,
    clip,
    schedule: (step) => 1e-3 * step,
    stepsTaken: () => taken,
  });
  const note = (found: readonly StepOutcome[]) => {
    taken += found.filter(({ kind }) => kind === 'taken').length;
    outcomes.push(...found);
  };
  manualSeed(7);
  const list: Batch[] = [...firstBatches(task, 24, 4)];
  const bias = model.generator.proj.bias!;
  for (let step = 0; step < steps; step++) {
    const good = bias.detach().clone();
    if (step === faultAt) noGrad(() => bias.fill_(NaN));
    note(await runner.take([list[step % list.length] as Batch]));
    if (step === faultAt) noGrad(() => bias.copy_(good));
  }
  note(await runner.finish());
  return { outcomes, weights: weightsOf(model) } satisfies Run;
}

const immediate: RunOptions['make'] = (settings) => new ImmediateSteps(settings);
const queued: RunOptions['make'] = (settings) => new QueuedSteps(settings, false);

function expectAlike(one: Run, other: Run): void {
  expect(other.outcomes.map(({ kind }) => kind)).toEqual(one.outcomes.map(({ kind }) => kind));
  one.outcomes.forEach((outcome, index) => {
    const found = other.outcomes[index] as StepOutcome;
    if (outcome.kind !== 'taken' || found.kind !== 'taken') return;
    expect(found.tokens).toBe(outcome.tokens);
    expect(found.learningRate).toBe(outcome.learningRate);
    expect(found.lossSum / found.tokens).toBeCloseTo(outcome.lossSum / outcome.tokens, 5);
  });
  expect(largestDifference(one.weights, other.weights)).toBeLessThan(1e-6);
}

describe('queued steps', () => {
  it('have the losses, rates and weights of immediate ones', async () => {
    expectAlike(await train({ make: immediate }), await train({ make: queued }));
  });

  it.each(['crossEntropy', 'klDivergence'] as const)('smooth labels: %s', async (form) => {
    const smoothing = { labelSmoothing: 0.1, smoothingForm: form };
    const one = await train({ make: immediate, smoothing });
    expectAlike(one, await train({ make: queued, smoothing }));
    const sharp = await train({ make: immediate });
    expect(largestDifference(one.weights, sharp.weights)).toBeGreaterThan(1e-4);
  });

  it('clip gradients to the same norm', async () => {
    const clip = 0.05;
    const clipped = await train({ make: immediate, clip });
    expectAlike(clipped, await train({ make: queued, clip }));
    const free = await train({ make: immediate });
    expect(largestDifference(clipped.weights, free.weights)).toBeGreaterThan(1e-4);
  });

  it('take AdamW too', async () => {
    const optimizer = (model: Transformer) => new AdamW(model.parameters(), { weightDecay: 0.1 });
    expectAlike(
      await train({ make: immediate, optimizer }),
      await train({ make: queued, optimizer }),
    );
  });

  it('tell the outcome of a step when the next one is given', async () => {
    const steps = queued(stepSettings(tinyModel(task.tokenizer.vocabSize), task.specialIds));
    const [first, second] = [...firstBatches(task, 8, 4)] as [Batch, Batch];
    expect(await steps.take([first])).toEqual([]);
    expect(await steps.take([second])).toMatchObject([{ kind: 'taken', tokens: first.ntokens }]);
    expect(await steps.finish()).toMatchObject([{ kind: 'taken', tokens: second.ntokens }]);
    expect(await steps.finish()).toEqual([]);
  });
});

describe('a queued step whose loss is not finite', () => {
  it('leaves weights, moments and the count of steps as they are', async () => {
    // The weights that the fault was in are put right by the test, the others must not have moved:
    // then the steps behind it come out as if it had not been there.
    const options = { faultAt: 2, steps: 5 };
    const one = await train({ make: immediate, ...options });
    const other = await train({ make: queued, ...options });
    expect(one.outcomes.map(({ kind }) => kind)).toEqual([
      'taken',
      'taken',
      'skipped',
      'taken',
      'taken',
    ]);
    expect(other.outcomes[2]).toMatchObject({ kind: 'skipped', fault: 'the loss is NaN' });
    expectAlike(one, other);
  });

  it('is the last one where faults stop the training', async () => {
    const make: RunOptions['make'] = (settings) => new QueuedSteps(settings, true);
    const stopped = await train({ make, faultAt: 2, steps: 4 });
    const before = await train({ make: immediate, steps: 2 });
    expect(stopped.outcomes.map(({ kind }) => kind)).toEqual(['taken', 'taken', 'skipped']);
    expect(largestDifference(stopped.weights, before.weights)).toBeLessThan(1e-6);
  });
});

it('queued steps leave no tensor behind', async () => {
  const model = tinyModel(task.tokenizer.vocabSize);
  const steps = queued(stepSettings(model, task.specialIds));
  const list: Batch[] = [...firstBatches(task, 24, 4)];
  // What earlier tests left behind must not be collected while this one counts.
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await setImmediate();
  }
  const counts: number[] = [];
  for (const batch of list) {
    await inScope(() => steps.take([batch]));
    counts.push(memory().tensors);
  }
  // The first step makes the optimizer's state.
  expect(new Set(counts.slice(1)).size).toBe(1);
  await steps.finish();
  expect(memory().tensors).toBe(counts.at(-1));
});
