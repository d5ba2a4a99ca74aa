/** Learning rates against those of PyTorch's schedulers. */
import { describe, expect, it } from 'vitest';
import { cosine, inverseSquareRoot, linearDecay, warmup, type DecayOptions } from 'torchformer';
import { index } from './fixtures.js';
import type { ScheduleCase } from './fixtures.js';

const { steps, cases } = index.schedules;

const make = {
  warmup: ({ learningRate, warmup: count = 0 }: ScheduleCase['options']) =>
    warmup(learningRate, count),
  inverseSquareRoot,
  cosine: (options: ScheduleCase['options']) => cosine(options as DecayOptions),
  linearDecay: (options: ScheduleCase['options']) => linearDecay(options as DecayOptions),
};

describe('the rate of every step equals PyTorch’s', () => {
  const named = cases.map((one) => [one.schedule, JSON.stringify(one.options), one] as const);
  it.each(named)('%s %s', (name, _, { options, rates }) => {
    const schedule = make[name](options);
    steps.forEach((step, place) => {
      const expected = rates[place] as number;
      // PyTorch's warmup begins at 1e-12 of the rate, because it refuses 0.
      expect(Math.abs(schedule(step) - expected), `step ${step}`).toBeLessThan(1e-13);
    });
  });
});
