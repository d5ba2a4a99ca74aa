/** Runs what a fixture names and compares outputs and gradients with PyTorch's. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tidy } from 'torchformer';
import type { Tensor } from 'torchformer';
import type { Mode, Subject } from './subject.js';
import { difference, expectWithin, get, index, largest, readFixture, under } from './fixtures.js';
import type { Case, ExactCase, FloatType, Tensors } from './fixtures.js';

export interface Worst {
  /** Of the larger of 1 and the largest reference output. */
  output: number;
  /** Of the largest reference gradient of the module. */
  gradient: number;
}

/** DESIGN of the tolerances: README.md. */
export const tolerances: Record<FloatType, Worst> = {
  float32: { output: 1e-5, gradient: 1e-4 },
  float64: { output: 1e-12, gradient: 1e-10 },
};

export const modes: readonly Mode[] = ['evaluation', 'training with p = 0'];

/** The tests of a group of exact cases: each in its types and in both modes. */
export function describeExact(
  group: 'seed000' | 'seed002' | 'options' | 'bfloat16',
  build: (given: Case, mode: Mode) => Subject,
): void {
  let fixtures: Tensors;
  beforeAll(async () => {
    fixtures = await readFixture(group);
  });
  const figures = printedFigures();
  const cases = index.exact[group];
  const names = new Set(cases.map(({ module }) => module));
  describe.each([...names])('%s equals PyTorch', (name) => {
    for (const given of cases.filter(({ module }) => module === name)) {
      for (const dtype of given.dtypes) {
        it.each(modes)(`${given.title} (${dtype}, %s)`, (mode) => {
          tidy(() => {
            const worst = compareCase(
              given,
              build(given, mode),
              fixtures,
              dtype,
              limits(given, dtype),
            );
            figures.add(`${name} ${dtype}`, worst);
          });
        });
      }
    }
  });
}

function limits(given: ExactCase, dtype: FloatType | 'bfloat16'): Worst {
  if (dtype !== 'bfloat16') return tolerances[dtype];
  const limit = given.bfloat16?.limit;
  if (limit === undefined) throw new Error(`${given.title} has no limit for bfloat16`);
  return { output: limit, gradient: limit };
}

/** One test; the mode is the subject's own. */
export function compareCase(
  given: Case,
  { module, run }: Subject,
  fixtures: Tensors,
  dtype: FloatType | 'bfloat16',
  limit: Worst,
): Worst {
  if (module !== null && given.state !== null) {
    module.to({ dtype }).loadStateDict(under(fixtures, given.state));
  }
  const inputs = new Map<string, Tensor>();
  for (const [name, value] of under(fixtures, `${given.key}/input`)) {
    const needed = given.inputGradients.includes(name);
    const input = needed ? value.to({ dtype }).clone() : value.clone();
    if (needed) input.requiresGrad = true;
    inputs.set(name, input);
  }
  const outputs = new Map(
    Object.entries(run(...given.arguments.map((name) => (name ? get(inputs, name) : null)))),
  );

  const worst = { output: 0, gradient: 0 };
  for (const name of given.outputs) {
    const actual = get(outputs, name);
    const expected = get(fixtures, `${given.key}/output/${name}`);
    const scaled = distance(actual, expected, dtype) / Math.max(1, largest(expected));
    worst.output = Math.max(worst.output, scaled);
    expectWithin(name, scaled, limit.output);
  }

  for (const [name, gradient] of under(fixtures, `${given.key}/upstream`)) {
    const output = get(outputs, name);
    output.backward({ gradient: gradient.to({ dtype: output.dtype }), retainGraph: true });
  }
  const expectedGradients = under(fixtures, `${given.key}/gradient`);
  const found = new Map<string, Tensor | null>();
  for (const name of given.inputGradients) found.set(`input/${name}`, get(inputs, name).grad);
  for (const [name, parameter] of module?.namedParameters() ?? []) {
    if (parameter.requiresGrad) found.set(`parameter/${name}`, parameter.grad);
    else expect(parameter.grad, `gradient of the frozen ${name}`).toBeNull();
  }
  expect([...found.keys()].sort()).toEqual([...expectedGradients.keys()].sort());
  const scale = Math.max(...[...expectedGradients.values()].map(largest));
  for (const [name, expected] of expectedGradients) {
    const actual = found.get(name) ?? null;
    // A parameter that the call did not reach has none; the reference's is zero.
    if (actual === null && largest(expected) === 0) continue;
    if (actual === null) throw new Error(`${name} got no gradient`);
    const scaled = distance(actual, expected, dtype) / scale;
    worst.gradient = Math.max(worst.gradient, scaled);
    expectWithin(`gradient of ${name}`, scaled, limit.gradient);
  }
  return worst;
}

/** The actual one must be of the type under test; a loss may be wider. */
function distance(actual: Tensor, expected: Tensor, dtype: FloatType | 'bfloat16'): number {
  const own = dtype === 'bfloat16' && actual.shape.length === 0 ? 'float32' : dtype;
  expect(actual.dtype).toBe(own);
  return tidy(() => difference(actual.double(), expected.double()));
}

/** Collects largest differences; printed with PARITY_FIGURES=1. */
export function printedFigures(): { add(name: string, worst: Worst): void } {
  const figures: Record<string, Worst> = {};
  afterAll(() => {
    if (process.env.PARITY_FIGURES === '1') console.table(figures);
  });
  return {
    add(name, worst) {
      const figure = (figures[name] ??= { output: 0, gradient: 0 });
      figure.output = Math.max(figure.output, worst.output);
      figure.gradient = Math.max(figure.gradient, worst.gradient);
    },
  };
}
