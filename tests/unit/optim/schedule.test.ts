import { describe, expect, it } from 'vitest';
import {
  Adam,
  clipGradNorm,
  constant,
  cosine,
  inverseSquareRoot,
  linearDecay,
  memory,
  noam,
  ones,
  Parameter,
  tensor,
  warmup,
  zeros,
} from 'torchformer';
import type { DecayOptions, NoamOptions, Tensor } from 'torchformer';
import { numbers } from '../../support/numbers.js';

describe('noam', () => {
  const rate = noam({ dModel: 512, warmup: 4000 });

  it.each([
    [0, 1.746928e-7],
    [1, 1.746928e-7],
    [4000, 6.987712e-4],
    [8000, 4.941059e-4],
  ])('at step %i is %f', (step, expected) => {
    expect(rate(step) / expected).toBeCloseTo(1, 6);
  });

  it('depends on the step alone, so a resumed run goes on as if never stopped', () => {
    const resumed = noam({ dModel: 512, warmup: 4000 });
    for (let step = 1; step <= 10; step++) rate(step);
    expect(resumed(11)).toBe(rate(11));
  });

  it('is the rate itself, whatever the rate of the optimizer was', () => {
    const optimizer = new Adam([new Parameter(ones([1]))], { lr: 5 });
    optimizer.lr = noam({ dModel: 4, warmup: 4, factor: 2 })(4);
    expect(optimizer.lr).toBeCloseTo(0.5, 12);
  });

  it.each([
    [{ dModel: 512, warmup: 0 }, /warmup must be an integer at least 1, got 0/],
    [{ dModel: 0 }, /dModel/],
    [{ dModel: 512, factor: -1 }, /factor/],
    [{ dModel: 512, warmUp: 3 }, /"warmUp"; valid options: dModel, factor, warmup/],
  ])('refuses %j', (options, message) => {
    expect(() => noam(options as NoamOptions)).toThrow(message);
  });

  it('refuses steps that are no counts', () => {
    expect(() => rate(-1)).toThrow(RangeError);
    expect(() => rate(0.5)).toThrow(RangeError);
  });
});

describe('constant', () => {
  it('is the same at every step', () => {
    expect([0, 1, 1000].map(constant(3e-4))).toEqual([3e-4, 3e-4, 3e-4]);
    expect(() => constant(NaN)).toThrow(RangeError);
  });
});

describe('warmup', () => {
  it('grows in a straight line to the rate and stays there', () => {
    const schedule = warmup(0.004, 4);
    expect([1, 2, 3, 4, 5, 100].map(schedule)).toEqual([0.001, 0.002, 0.003, 0.004, 0.004, 0.004]);
  });

  it('of no steps is a constant rate', () => {
    expect([1, 2].map(warmup(0.1, 0))).toEqual([0.1, 0.1]);
  });

  it('refuses rates and steps that make no sense', () => {
    expect(() => warmup(0, 1)).toThrow(/rate must be a finite number above 0, got 0/);
    expect(() => warmup(Infinity, 1)).toThrow(RangeError);
    expect(() => warmup(0.1, 1.5)).toThrow(RangeError);
  });
});

describe('inverseSquareRoot', () => {
  it('grows to the rate, then halves each time the steps are fourfold', () => {
    const rate = inverseSquareRoot({ learningRate: 0.8, warmup: 4 });
    expect([0, 1, 2, 4, 16, 64].map(rate)).toEqual([0, 0.2, 0.4, 0.8, 0.4, 0.2]);
  });

  it('is noam with another highest rate', () => {
    const paper = noam({ dModel: 512, warmup: 4000 });
    const rate = inverseSquareRoot({ learningRate: paper(4000) });
    for (const step of [1, 100, 4000, 4001, 50_000]) {
      expect(rate(step) / paper(step)).toBeCloseTo(1, 12);
    }
  });

  it('refuses a warmup of 0, which would leave no rate to fall from', () => {
    expect(() => inverseSquareRoot({ learningRate: 1, warmup: 0 })).toThrow(/warmup.*at least 1/);
  });
});

describe.each([
  // Halfway between step 2 and step 6 is half the rate; a quarter of the way is (1 + √½) / 2 of it.
  ['cosine', cosine, (1 + Math.SQRT1_2) / 2],
  ['linearDecay', linearDecay, 3 / 4],
] as const)('%s', (_, decay, quarter) => {
  it('grows to the rate and falls to 0 at the last step', () => {
    const rate = decay({ learningRate: 8, warmup: 2, steps: 6 });
    [0, 4, 8, 8 * quarter, 4, 8 * (1 - quarter), 0, 0].forEach((expected, step) => {
      expect(rate(step)).toBeCloseTo(expected, 12);
    });
  });

  it('falls to min and stays there, for further steps too', () => {
    const rate = decay({ learningRate: 8, steps: 4, min: 2 });
    expect(rate(0)).toBe(8);
    expect(rate(2)).toBeCloseTo(5, 12);
    expect([4, 5, 1000].map(rate)).toEqual([2, 2, 2]);
  });

  it('refuses ends before the warmup, a min above the rate, and unknown settings', () => {
    const make = (options: object) => () => decay(options as DecayOptions);
    expect(make({ learningRate: 1, warmup: 5, steps: 5 })).toThrow(/steps.*at least 6, got 5/);
    expect(make({ learningRate: 1, steps: 5, min: 2 })).toThrow(/min must be at most learningRate/);
    expect(make({ learningRate: 1 })).toThrow(/steps must be/);
    expect(make({ learningRate: 1, steps: 5, end: 1 })).toThrow(/"end"; valid options/);
  });
});

describe('clipGradNorm', () => {
  function withGradients(...gradients: (Tensor | null)[]): Parameter[] {
    return gradients.map((gradient) => {
      const parameter = new Parameter(
        zeros(gradient?.shape ?? [1], { dtype: gradient?.dtype ?? 'float32' }),
      );
      parameter.grad = gradient;
      return parameter;
    });
  }
  const gradient = (parameter: Parameter | undefined) => numbers(parameter?.grad as Tensor);

  it('scales all gradients by one factor when their common norm is larger', () => {
    const parameters = withGradients(tensor([3]), null, tensor([[0, 4]]));
    expect(clipGradNorm(parameters, 2.5)).toBeCloseTo(5, 6);
    expect(gradient(parameters[0])[0]).toBeCloseTo(1.5, 5);
    expect(gradient(parameters[2])[1]).toBeCloseTo(2, 5);
    expect(parameters[1]?.grad).toBeNull();
  });

  it('leaves smaller ones to the bit', () => {
    const parameters = withGradients(tensor([3]), tensor([4]));
    expect(clipGradNorm(parameters, 5.1)).toBeCloseTo(5, 6);
    expect(parameters.flatMap(gradient)).toEqual([3, 4]);
  });

  it('measures by other norms', () => {
    const parameters = withGradients(tensor([3]), tensor([-4]));
    expect(clipGradNorm(parameters, 100, { normType: 1 })).toBeCloseTo(7, 6);
    expect(clipGradNorm(parameters, 2, { normType: Infinity })).toBeCloseTo(4, 6);
    expect(gradient(parameters[1])[0]).toBeCloseTo(-2, 5);
  });

  it('adds up halves without overflow, and dtypes together', () => {
    const parameters = withGradients(
      tensor([30000, 40000], { dtype: 'float16' }),
      tensor([0], { dtype: 'float64' }),
    );
    expect(clipGradNorm(parameters, 1)).toBeCloseTo(50000, 0);
    expect(gradient(parameters[0])[1]).toBeCloseTo(0.8, 2);
  });

  it('returns a norm that is not finite, and leaves the gradients alone', () => {
    const parameters = withGradients(tensor([Infinity]), tensor([4]));
    expect(clipGradNorm(parameters, 1)).toBe(Infinity);
    expect(gradient(parameters[1])).toEqual([4]);
    expect(clipGradNorm(withGradients(tensor([NaN])), 1)).toBeNaN();
  });

  it('is 0 without gradients, and when all are 0', () => {
    expect(clipGradNorm(withGradients(null), 1)).toBe(0);
    const parameters = withGradients(zeros([2]));
    expect(clipGradNorm(parameters, 1)).toBe(0);
    expect(gradient(parameters[0])).toEqual([0, 0]);
  });

  it('leaves no tensors behind, and refuses limits that are none', () => {
    const parameters = withGradients(tensor([3]), tensor([4]));
    const before = memory().tensors;
    clipGradNorm(parameters, 1);
    expect(memory().tensors).toBe(before);
    expect(() => clipGradNorm(parameters, 0)).toThrow(RangeError);
    expect(() => clipGradNorm([1] as unknown as Tensor[], 1)).toThrow(TypeError);
  });
});
