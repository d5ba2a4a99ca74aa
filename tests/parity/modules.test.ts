/** Outputs and gradients of every part of the model against PyTorch's. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tidy } from 'torchformer';
import type { Tensor } from 'torchformer';
import { build } from './build.js';
import { difference, expectWithin, get, index, largest, readFixture, under } from './fixtures.js';
import type { ModuleCase, Tensors } from './fixtures.js';

const tolerances = {
  float32: { output: 1e-5, gradient: 1e-4 },
  float64: { output: 1e-12, gradient: 1e-10 },
};

let fixtures: Tensors;
beforeAll(async () => {
  fixtures = await readFixture('modules');
});

/** Largest differences found, printed with PARITY_FIGURES=1. */
const figures: Record<string, { output: number; gradient: number }> = {};
afterAll(() => {
  if (process.env.PARITY_FIGURES === '1') console.table(figures);
});

const names = new Set(index.modules.map(({ module }) => module));
describe.each([...names])('%s equals PyTorch', (name) => {
  for (const given of index.modules.filter(({ module }) => module === name)) {
    it(`${given.title} (${given.dtype})`, () => {
      tidy(() => compare(given));
    });
  }
});

function compare(given: ModuleCase): void {
  const { module, run } = build(given);
  if (module !== null && given.state !== null) {
    module.to({ dtype: given.dtype }).loadStateDict(under(fixtures, given.state));
  }
  const inputs = new Map<string, Tensor>();
  for (const [name, value] of under(fixtures, `${given.key}/input`)) {
    const input = value.clone();
    if (given.inputGradients.includes(name)) input.requiresGrad = true;
    inputs.set(name, input);
  }
  const outputs = run(...given.arguments.map((name) => (name === null ? null : get(inputs, name))));

  const worst = { output: 0, gradient: 0 };
  for (const [name, expected] of under(fixtures, `${given.key}/output`)) {
    const off = difference(get(new Map(Object.entries(outputs)), name), expected);
    const scaled = off / Math.max(1, largest(expected));
    worst.output = Math.max(worst.output, scaled);
    expectWithin(name, scaled, tolerances[given.dtype].output);
  }

  for (const [name, gradient] of under(fixtures, `${given.key}/upstream`)) {
    get(new Map(Object.entries(outputs)), name).backward({ gradient, retainGraph: true });
  }
  const expectedGradients = under(fixtures, `${given.key}/gradient`);
  const found = new Map<string, Tensor | null>();
  for (const name of given.inputGradients) found.set(`input/${name}`, get(inputs, name).grad);
  for (const [name, parameter] of module?.namedParameters() ?? []) {
    found.set(`parameter/${name}`, parameter.grad);
  }
  expect([...found.keys()].sort()).toEqual([...expectedGradients.keys()].sort());
  const scale = Math.max(...[...expectedGradients.values()].map(largest));
  for (const [name, expected] of expectedGradients) {
    const actual = found.get(name);
    if (actual === null || actual === undefined) throw new Error(`${name} got no gradient`);
    const scaled = difference(actual, expected) / scale;
    worst.gradient = Math.max(worst.gradient, scaled);
    expectWithin(`gradient of ${name}`, scaled, tolerances[given.dtype].gradient);
  }

  const figure = (figures[`${given.module} ${given.dtype}`] ??= { output: 0, gradient: 0 });
  figure.output = Math.max(figure.output, worst.output);
  figure.gradient = Math.max(figure.gradient, worst.gradient);
}
