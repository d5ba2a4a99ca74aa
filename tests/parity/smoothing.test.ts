/** Label smoothing in both forms against PyTorch's CrossEntropyLoss and KLDivLoss. */
import { beforeAll, describe, it } from 'vitest';
import {
  crossEntropy,
  Linear,
  linearCrossEntropy,
  noGrad,
  Parameter,
  type Tensor,
} from 'torchformer';
import { difference, expectWithin, get, index, largest, readFixture, under } from './fixtures.js';
import type { SmoothingCase, Tensors } from './fixtures.js';

const { pad, cases } = index.smoothing;
const tolerance = { float32: 1e-6, float64: 1e-13 };

let fixtures: Tensors;
beforeAll(async () => {
  fixtures = await readFixture('smoothing');
});

describe.each(cases.map((one) => [one.key, one] as const))('%s', (_, one) => {
  const options = () => ({
    ignoreIndex: pad,
    labelSmoothing: one.smoothing,
    smoothingForm: one.form,
  });

  it('linearCrossEntropy: loss of each target, and gradients', () => {
    const { linear, input, target } = given(one);
    const { loss, tokenLosses } = linearCrossEntropy(input, linear, target, options());
    loss.backward();
    expectLosses(one, tokenLosses);
    expectGradients(one, { input, weight: linear.weight, bias: linear.bias as Tensor });
  });

  it('crossEntropy of the scores: loss of each target, and gradients', () => {
    const { linear, input, target } = given(one);
    const losses = crossEntropy(linear.forward(input), target, { ...options(), reduction: 'none' });
    losses.sum().backward();
    expectLosses(one, losses);
    expectGradients(one, { input, weight: linear.weight, bias: linear.bias as Tensor });
  });
});

function given({ dtype }: SmoothingCase): { linear: Linear; input: Parameter; target: Tensor } {
  const values = under(fixtures, 'given');
  const [classes, features] = get(values, 'weight').shape as [number, number];
  const linear = new Linear(features, classes).to({ dtype });
  noGrad(() => {
    linear.weight.copy_(get(values, 'weight'));
    linear.bias?.copy_(get(values, 'bias'));
  });
  const input = new Parameter(get(values, 'input').to({ dtype }));
  return { linear, input, target: get(fixtures, 'target') };
}

function expectLosses({ key, dtype }: SmoothingCase, losses: Tensor): void {
  const expected = get(fixtures, `${key}/losses`);
  expectWithin('losses', difference(losses, expected) / largest(expected), tolerance[dtype]);
}

function expectGradients(
  { key, dtype }: SmoothingCase,
  leaves: Readonly<Record<string, Tensor>>,
): void {
  for (const [name, expected] of under(fixtures, `${key}/gradient`)) {
    const off = difference(leaves[name]?.grad as Tensor, expected) / largest(expected);
    expectWithin(`gradient of ${name}`, off, tolerance[dtype]);
  }
}
