/** Parameters after each step against PyTorch's optimizers, with the same gradients. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Adafactor, AdamW, Parameter, type Tensor } from 'torchformer';
import { difference, expectWithin, get, index, largest, readFixture } from './fixtures.js';
import type { OptimizerRun, Tensors } from './fixtures.js';

const { steps, names, noDecay, runs } = index.optimizers;
const tolerance = { float32: 2e-6, float64: 1e-13 };

/** Settings of torch.optim that have another name here. */
const renamed: Readonly<Record<string, string>> = {
  weight_decay: 'weightDecay',
  beta2_decay: 'beta2Decay',
  d: 'clipThreshold',
};
const optimizers = { AdamW, Adafactor };

let fixtures: Tensors;
beforeAll(async () => {
  fixtures = await readFixture('optimizers');
});

function optimizerFor({ optimizer, settings }: OptimizerRun, parameters: Map<string, Parameter>) {
  const own = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [renamed[name] ?? name, value]),
  );
  const named = [...parameters];
  const groups = [
    { params: named.filter(([name]) => !noDecay.includes(name)).map(([, one]) => one) },
    {
      params: noDecay.map((name) => parameters.get(name) as Parameter),
      weightDecay: 0,
    },
  ];
  return new optimizers[optimizer](groups, own);
}

describe('with parameters left out of the decay, each step equals PyTorch’s', () => {
  const labelled = runs.map((run) => {
    const label = `${run.optimizer} ${JSON.stringify(run.settings)}, ${run.dtype}`;
    return [label, run] as const;
  });
  it.each(labelled)('%s', (_, run) => {
    const parameters = new Map(
      names.map((name) => {
        const initial: Tensor = get(fixtures, `initial/${name}`).to({ dtype: run.dtype });
        return [name, new Parameter(initial.clone())];
      }),
    );
    const optimizer = optimizerFor(run, parameters);
    for (let step = 0; step < steps; step++) {
      for (const [name, parameter] of parameters) {
        parameter.grad = get(fixtures, `gradient${step}/${name}`).to({ dtype: run.dtype });
      }
      optimizer.step();
      for (const [name, parameter] of parameters) {
        const expected = get(fixtures, `${run.key}/step${step}/${name}`);
        const off = difference(parameter, expected) / Math.max(1, largest(expected));
        expectWithin(`${name} after step ${step}`, off, tolerance[run.dtype]);
        const moved = difference(
          expected,
          get(fixtures, `initial/${name}`).to({ dtype: run.dtype }),
        );
        if (name !== 'still') expect(moved).toBeGreaterThan(100 * tolerance[run.dtype]);
      }
    }
    optimizer.dispose();
  });
});
