import { beforeEach, describe, expect, it } from 'vitest';
import {
  ExponentialMovingAverage,
  freeze,
  Linear,
  makeBatch,
  memory,
  noGrad,
  SGD,
  tensor,
  Trainer,
} from 'torchformer';
import type { MovingAverageState } from 'torchformer';
import { numbers } from '../../../support/numbers.js';
import { tinyModel, weightsOf } from '../../../support/tinyTranslation.js';

let model: Linear;
beforeEach(() => {
  model = new Linear(2, 1, { bias: false }).double();
  step(1, 1);
});

/** What a step of an optimizer does: other weights in the same parameter. */
function step(...weights: number[]): void {
  noGrad(() => void model.weight.copy_(tensor([weights], { dtype: 'float64' })));
}

const averageOf = (average: ExponentialMovingAverage) =>
  numbers(average.stateDict().tensors.get('weight') as never);

describe('ExponentialMovingAverage', () => {
  it('starts with the weights of the first update, then keeps `decay` of the average', () => {
    const average = new ExponentialMovingAverage(model, { decay: 0.75 });
    step(8, 0);
    average.update();
    expect(averageOf(average)).toEqual([8, 0]);
    step(4, 4);
    average.update();
    // 0.75 · 8 + 0.25 · 4, and 0.75 · 0 + 0.25 · 4
    expect(averageOf(average)).toEqual([7, 1]);
    expect(average.updates).toBe(2);
    expect(numbers(model.weight)).toEqual([4, 4]);
  });

  it('limits the decay to (1 + n) / (10 + n) during its warm-up', () => {
    const average = new ExponentialMovingAverage(model, { decay: 0.25, warmup: true });
    step(0, 0);
    average.update();
    step(11, 22);
    average.update();
    // n = 1: 2 / 11 of the average is kept.
    expect(averageOf(average)[0]).toBeCloseTo(9, 12);
    average.update();
    // n = 2: 3 / 12 = 0.25; from now on 0.25.
    expect(averageOf(average)[0]).toBeCloseTo(0.25 * 9 + 0.75 * 11, 12);
    average.update();
    expect(averageOf(average)[0]).toBeCloseTo(0.25 * 10.5 + 0.75 * 11, 12);
  });

  it('gives the same from updateAsync, off the event loop', async () => {
    const [one, other] = [new ExponentialMovingAverage(model), new ExponentialMovingAverage(model)];
    for (const weight of [3, 5, 7]) {
      step(weight, -weight);
      one.update();
      await other.updateAsync();
    }
    expect(averageOf(other)).toEqual(averageOf(one));
  });

  it('averages a tied parameter once', () => {
    const tied = tinyModel(20, { tie: 'all' });
    const average = new ExponentialMovingAverage(tied);
    expect(average.stateDict().tensors.size).toBe(tied.parameters().length);
    expect([...average.stateDict().tensors.keys()]).not.toContain('generator.proj.weight');
  });

  it('leaves frozen parameters alone', () => {
    const part = tinyModel(20);
    freeze(part, 'encoder.*');
    const names = [...new ExponentialMovingAverage(part).stateDict().tensors.keys()];
    expect(names.filter((name) => name.startsWith('encoder.'))).toEqual([]);
    freeze(part, '*');
    expect(() => new ExponentialMovingAverage(part)).toThrow(
      'ExponentialMovingAverage: the model has no trainable parameter to average',
    );
  });

  it('keeps the average of half-precision weights in float32, where small steps count', () => {
    const half = new Linear(1, 1, { bias: false });
    noGrad(() => void half.weight.fill_(1));
    half.bfloat16();
    const average = new ExponentialMovingAverage(half, { decay: 0.999 });
    average.update();
    noGrad(() => void half.weight.fill_(2));
    average.update();
    const value = average.stateDict().tensors.get('weight');
    expect(value?.dtype).toBe('float32');
    // In bfloat16 this would be 1.
    expect(value?.item()).toBeCloseTo(1.001, 6);
    average.copyTo();
    expect(half.weight.dtype).toBe('bfloat16');
  });

  it('takes as much memory as the parameters, and frees it', () => {
    const before = memory();
    const average = new ExponentialMovingAverage(model);
    average.update();
    average.update();
    expect(memory().tensors - before.tensors).toBe(1);
    average.dispose();
    expect(memory().tensors).toBe(before.tensors);
  });
});

describe('in the place of the weights', () => {
  let average: ExponentialMovingAverage;
  beforeEach(() => {
    average = new ExponentialMovingAverage(model, { decay: 0.5 });
    average.update();
    step(3, 5);
    average.update();
  });

  it('swap exchanges both, and again puts them back', () => {
    const { weight } = model;
    average.swap();
    expect([numbers(model.weight), average.isSwapped]).toEqual([[2, 3], true]);
    average.swap();
    expect([numbers(model.weight), average.isSwapped]).toEqual([[3, 5], false]);
    expect(model.weight).toBe(weight);
    expect(averageOf(average)).toEqual([2, 3]);
  });

  it('withAverages swaps for one function, also if it fails', async () => {
    expect(await average.withAverages(() => numbers(model.weight))).toEqual([2, 3]);
    expect(await average.withAverages(async () => Promise.resolve(5))).toBe(5);
    const failing = average.withAverages(() => {
      throw new Error('no space');
    });
    await expect(failing).rejects.toThrow('no space');
    expect(numbers(model.weight)).toEqual([3, 5]);
  });

  it.each(['update', 'copyTo', 'stateDict', 'modelState'] as const)(
    '%s is refused meanwhile',
    (method) => {
      average.swap();
      expect(() => average[method]()).toThrow(
        `ExponentialMovingAverage.${method}: the averages are in the model, and its weights here; ` +
          'call swap() first',
      );
    },
  );

  it('copyTo writes them into a copy of the model, or into the model itself', () => {
    const copy = model.clone();
    average.copyTo(copy);
    expect(numbers(copy.weight)).toEqual([2, 3]);
    expect(numbers(model.weight)).toEqual([3, 5]);
    average.copyTo();
    expect(numbers(model.weight)).toEqual([2, 3]);
  });

  it('modelState is the state dict with the averages, under all names', () => {
    const tied = tinyModel(20, { tie: 'all' });
    freeze(tied, 'decoder.*');
    const mean = new ExponentialMovingAverage(tied);
    mean.update();
    noGrad(() => void tied.generator.proj.weight.fill_(5));
    const state = mean.modelState();
    expect([...state.keys()]).toEqual([...tied.stateDict().keys()]);
    expect(state.get('generator.proj.weight')).toBe(state.get('src_embed.0.embedding.weight'));
    const saved = mean.stateDict().tensors.get('src_embed.0.embedding.weight');
    expect(numbers(state.get('generator.proj.weight') as never)).toEqual(numbers(saved as never));
    expect(numbers(state.get('decoder.norm.a_2') as never)[0]).toBe(1);
  });

  it('copyTo refuses another model, and changes nothing', () => {
    expect(() => average.copyTo(new Linear(3, 1))).toThrow(
      'ExponentialMovingAverage.copyTo: parameter "weight" is [1, 3], its average [1, 2]',
    );
    expect(() => average.copyTo(tinyModel(20))).toThrow('the model has no parameter "weight"');
  });
});

describe('the state', () => {
  it('continues exactly where the average was', () => {
    const average = new ExponentialMovingAverage(model, { decay: 0.9, warmup: true });
    for (const weight of [0.3, 0.1]) {
      step(weight, 1);
      average.update();
    }
    const { tensors, updates } = average.stateDict();
    const saved = { updates, tensors: new Map([...tensors].map(([name, t]) => [name, t.clone()])) };
    const resumed = new ExponentialMovingAverage(model, { decay: 0.9, warmup: true });
    resumed.loadStateDict(saved);
    for (const weight of [0.7, 0.2]) {
      step(weight, 2);
      average.update();
      resumed.update();
    }
    expect(averageOf(resumed)).toEqual(averageOf(average));
    expect(resumed.updates).toBe(4);
  });

  it.each<[string, (state: MovingAverageState) => unknown, string]>([
    ['no state', () => 5, 'state must be the result of stateDict(), { tensors, updates }, got 5'],
    ['without a number', ({ tensors }) => ({ tensors }), 'state must be the result of stateDict()'],
    ['of no weights', () => ({ tensors: new Map(), updates: 1 }), 'the state lacks "weight"'],
    [
      'of another shape',
      () => ({ tensors: new Map([['weight', tensor([1])]]), updates: 1 }),
      '"weight" is [1], expected [1, 2]',
    ],
    [
      'of another model',
      ({ tensors }) => ({ tensors: new Map([...tensors, ['bias', tensor([1])]]), updates: 1 }),
      'the model has no parameter "bias"',
    ],
  ])('%s is refused', (_, change, message) => {
    const average = new ExponentialMovingAverage(model);
    const wrong = change(average.stateDict()) as MovingAverageState;
    expect(() => average.loadStateDict(wrong)).toThrow(
      `ExponentialMovingAverage.loadStateDict: ${message}`,
    );
    expect(average.updates).toBe(0);
  });
});

it('averages a training: the mean lags behind the weights', async () => {
  const translator = tinyModel(20);
  const average = new ExponentialMovingAverage(translator, { decay: 0.5 });
  average.update();
  const before = weightsOf(translator)['generator.proj.bias'] as Float32Array;
  const trainer = new Trainer(translator, {
    specialIds: { pad: 0, bos: 1, eos: 2 },
    optimizer: new SGD(translator.parameters(), { lr: 0.5 }),
    reporter: null,
  });
  await trainer.fit([makeBatch([{ src: [1, 5, 2], tgt: [1, 6, 2], row: 1 }], 0)], { epochs: 1 });
  await average.updateAsync();
  const after = weightsOf(translator)['generator.proj.bias'] as Float32Array;
  const mean = await average.withAverages(
    () => weightsOf(translator)['generator.proj.bias'] as Float32Array,
  );
  for (const [index, value] of mean.entries()) {
    const expected = ((before[index] as number) + (after[index] as number)) / 2;
    expect(Math.abs(value - expected)).toBeLessThan(1e-7);
  }
});

it.each([
  [{ decay: 1.5 }, 'decay must be a number from 0 to 1, got 1.5'],
  [{ warmup: 5 }, 'warmup must be true or false, got 5'],
  [{ rate: 5 }, 'unknown option "rate"; valid options: decay, warmup'],
])('refuses %j', (options, message) => {
  expect(() => new ExponentialMovingAverage(model, options as object)).toThrow(
    `ExponentialMovingAverage: ${message}`,
  );
});
