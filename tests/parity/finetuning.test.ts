/** Low-rank updates and moving averages of weights against PyTorch's. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  applyLora,
  ExponentialMovingAverage,
  Linear,
  LoraLinear,
  MultiHeadedAttention,
  noGrad,
  PositionwiseFeedForward,
  tidy,
} from 'torchformer';
import type { Module } from 'torchformer';
import { compareCase, modes, printedFigures, tolerances } from './compare.js';
import { difference, get, index, readFixture, under } from './fixtures.js';
import type { Case, Tensors } from './fixtures.js';
import { argumentsOf, here, inMode, unary } from './subject.js';
import type { Mode, Subject } from './subject.js';

let fixtures: Tensors;
beforeAll(async () => {
  fixtures = await readFixture('finetuning');
});

const { modules, averages } = index.finetuning;
const figures = printedFigures();

describe('low-rank updates equal PyTorch', () => {
  for (const given of modules) {
    it.each(modes)(`${given.module} ${given.title} (${given.dtype}, %s)`, (mode) => {
      tidy(() => {
        const limit = tolerances[given.dtype];
        const worst = compareCase(given, build(given, mode), fixtures, given.dtype, limit);
        figures.add(`${given.module} ${given.dtype}`, worst);
      });
    });
  }
});

/** In eval mode, dropout is given and must not act. */
function build({ module: name, options }: Case, mode: Mode): Subject {
  const { number, has } = argumentsOf(name, options);
  const dropout = mode === 'evaluation' ? 0.5 : 0;
  const settings = { rank: number('rank'), alpha: number('alpha'), dropout };
  const updated = <M extends Module>(module: M): M => {
    applyLora(module, { ...settings, targets: options['targets'] as string[] });
    return module;
  };
  const builders: Record<string, () => Subject> = {
    LoraLinear: () =>
      unary(
        new LoraLinear(number('in_features'), number('out_features'), {
          ...settings,
          bias: !has('bias'),
        }),
      ),
    'PositionwiseFeedForward with LoRA': () =>
      unary(updated(new PositionwiseFeedForward(number('d_model'), number('d_ff'), { dropout }))),
    'MultiHeadedAttention with LoRA': () => {
      const module = updated(new MultiHeadedAttention(number('h'), number('d_model'), { dropout }));
      return {
        module,
        run: (query, key, value, mask) => ({
          output: module.forward(here(query), here(key), here(value), mask),
        }),
      };
    },
  };
  return inMode((builders[name] as () => Subject)(), mode);
}

describe('ExponentialMovingAverage equals AveragedModel', () => {
  const named = averages.map(
    (given) => [`decay ${given.decay}, warm-up ${given.warmup}, ${given.dtype}`, given] as const,
  );
  it.each(named)('%s: after each update', (_, { key, decay, warmup, dtype, steps }) => {
    const model = new Linear(3, 2).to({ dtype });
    const average = new ExponentialMovingAverage(model, { decay, warmup });
    for (let step = 0; step < steps; step++) {
      noGrad(() => model.loadStateDict(under(fixtures, `${key}/weights${step}`)));
      average.update();
      for (const [name, value] of average.stateDict().tensors) {
        const expected = get(fixtures, `${key}/average${step}/${name}`);
        // The same kernel, which other processors may round differently in the last bit.
        expect(difference(value, expected)).toBeLessThanOrEqual(dtype === 'float64' ? 1e-15 : 5e-7);
      }
    }
    average.dispose();
    model.dispose();
  });
});
