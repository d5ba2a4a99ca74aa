import { beforeEach, describe, expect, it } from 'vitest';
import { call, callTensor, grad, manualSeed, randn, tensor } from 'torchformer';
import type { Tensor } from 'torchformer';
import { gradientError } from '../../support/gradcheck.js';
import { largestDifference, numbers, randomDoubles } from '../../support/numbers.js';

beforeEach(() => manualSeed(1));

const normDialects = [
  { sample_std: false, eps_outside: false },
  { sample_std: false, eps_outside: true },
  { sample_std: true, eps_outside: false },
  { sample_std: true, eps_outside: true },
];

describe('finite differences in float64 confirm the gradients of', () => {
  it.each(normDialects)('layer_norm with %o', (dialect) => {
    const norm = (x: Tensor, scale: Tensor, shift: Tensor) =>
      callTensor('torchformer::layer_norm', x, scale, shift, 1e-6, dialect);
    const inputs = [randomDoubles(2, 3, 5), randomDoubles(5), randomDoubles(5)];
    expect(gradientError(norm, inputs)).toBeLessThan(1e-8);
  });

  it('layer_norm where eps is as large as the variance', () => {
    const norm = (x: Tensor, scale: Tensor, shift: Tensor) =>
      callTensor('torchformer::layer_norm', x, scale, shift, 0.5);
    expect(
      gradientError(norm, [randomDoubles(3, 4), randomDoubles(4), randomDoubles(4)]),
    ).toBeLessThan(1e-8);
  });

  it.each([
    ['without a mask', null],
    [
      'with a causal mask',
      [
        [
          [
            [1, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
          ],
        ],
      ],
    ],
    [
      'with a row that may attend nothing',
      [
        [
          [
            [1, 1, 0, 1],
            [0, 0, 0, 0],
            [0, 1, 0, 0],
          ],
        ],
      ],
    ],
    ['with a mask for each sequence', [[[[1, 1, 1, 0]]], [[[0, 1, 1, 1]]]]],
  ])('attention %s, output and weights', (_name, rows) => {
    const allowed = rows === null ? null : tensor(rows, { dtype: 'bool' });
    for (const empty_rows of ['uniform', 'zero']) {
      const attend = (query: Tensor, key: Tensor, value: Tensor) =>
        call('torchformer::attention', query, key, value, allowed, 0, {
          empty_rows,
          need_weights: true,
        }) as Tensor[];
      const inputs = [
        randomDoubles(2, 2, 3, 2),
        randomDoubles(2, 2, 4, 2),
        randomDoubles(2, 2, 4, 3),
      ];
      expect(gradientError(attend, inputs)).toBeLessThan(1e-8);
    }
  });

  it('attention without heads and with dropout', () => {
    const attend = (query: Tensor, key: Tensor, value: Tensor) => {
      manualSeed(5);
      return call('torchformer::attention', query, key, value, null, 0.4, {
        need_weights: true,
      }) as Tensor[];
    };
    const inputs = [randomDoubles(2, 3, 2), randomDoubles(2, 4, 2), randomDoubles(2, 4, 2)];
    expect(gradientError(attend, inputs)).toBeLessThan(1e-8);
  });

  it.each([0, 0.3])('feed_forward with dropout %f', (dropout) => {
    const feedForward = (x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) => {
      manualSeed(5);
      return callTensor('torchformer::feed_forward', x, w1, b1, w2, b2, dropout);
    };
    const inputs = [
      randomDoubles(2, 3, 4),
      randomDoubles(6, 4),
      randomDoubles(6),
      randomDoubles(4, 6),
      randomDoubles(4),
    ];
    expect(gradientError(feedForward, inputs)).toBeLessThan(1e-8);
  });

  it('feed_forward without biases', () => {
    const feedForward = (x: Tensor, w1: Tensor, w2: Tensor) =>
      callTensor('torchformer::feed_forward', x, w1, null, w2, null);
    const inputs = [randomDoubles(5, 4), randomDoubles(6, 4), randomDoubles(4, 6)];
    expect(gradientError(feedForward, inputs)).toBeLessThan(1e-8);
  });

  it('dropout', () => {
    const drop = (x: Tensor) => {
      manualSeed(5);
      return callTensor('torchformer::dropout', x, 0.5);
    };
    expect(gradientError(drop, [randomDoubles(4, 5)])).toBeLessThan(1e-8);
  });
});

describe('the check itself', () => {
  it('finds a wrong gradient', () => {
    // The gradient of x·stop(x) is x, that of x² is 2x.
    const wrong = (x: Tensor) => x.mul(x.detach());
    expect(gradientError(wrong, [randomDoubles(3)])).toBeGreaterThan(0.1);
  });
});

/**
 * Runs an op and its reference on the same inputs; the largest differences of outputs and of
 * gradients, each as a share of the largest number compared (of 1, where all are smaller).
 */
function compare(
  run: (op: string, ...inputs: Tensor[]) => Tensor | Tensor[],
  inputs: Tensor[],
): { values: number; gradients: number } {
  const results = ['', '_reference'].map((suffix) => {
    const leaves = inputs.map((input) => input.detach().clone().requiresGrad_());
    const outputs = [run(suffix, ...leaves)].flat();
    const loss = outputs.map((output) => output.mul(output.cos()).sum()).reduce((a, b) => a.add(b));
    return { outputs, gradients: grad(loss, leaves) };
  });
  const [fused, reference] = results as [(typeof results)[0], (typeof results)[0]];
  const size = (tensors: Tensor[]) => Math.max(1, ...tensors.map((one) => one.abs().max().item()));
  const largest = (a: Tensor[], b: Tensor[]) =>
    Math.max(...a.map((item, index) => largestDifference(item, b[index] as Tensor))) / size(b);
  return {
    values: largest(fused.outputs, reference.outputs),
    gradients: largest(fused.gradients, reference.gradients),
  };
}

describe.each([
  ['float64', 1e-13, 1e-12],
  ['float32', 2e-6, 2e-5],
] as const)('each native op equals its readable reference in %s', (dtype, values, gradients) => {
  const random = (...shape: number[]) => randn(shape, { dtype });

  it.each(normDialects)('layer_norm with %o', (dialect) => {
    const difference = compare(
      (suffix, ...inputs) =>
        callTensor(`torchformer::layer_norm${suffix}`, ...inputs, 1e-6, dialect),
      [random(3, 7, 16), random(16), random(16)],
    );
    expect(difference.values).toBeLessThan(values);
    expect(difference.gradients).toBeLessThan(gradients);
  });

  it.each(['uniform', 'zero'])('attention with empty rows %s', (empty_rows) => {
    const allowed = callTensor('aten::gt.Scalar', random(3, 1, 5, 6), 0.3);
    allowed.narrow(2, 1, 1).fill_(0);
    const difference = compare(
      (suffix, ...inputs) =>
        call(`torchformer::attention${suffix}`, ...inputs, allowed, 0, {
          empty_rows,
          need_weights: true,
        }) as Tensor[],
      [random(3, 2, 5, 4), random(3, 2, 6, 4), random(3, 2, 6, 3)],
    );
    expect(difference.values).toBeLessThan(values);
    expect(difference.gradients).toBeLessThan(gradients);
  });

  it('feed_forward', () => {
    const difference = compare(
      (suffix, ...inputs) => callTensor(`torchformer::feed_forward${suffix}`, ...inputs),
      [random(3, 5, 8), random(12, 8), random(12), random(8, 12), random(8)],
    );
    expect(difference.values).toBeLessThan(values);
    expect(difference.gradients).toBeLessThan(gradients);
  });
});

describe('rows of equal values', () => {
  it.each([
    [{ sample_std: true, eps_outside: true }, [-1.5e6, -5e5, 5e5, 1.5e6]],
    [{ sample_std: false, eps_outside: false }, [-1500, -500, 500, 1500]],
  ])('have a finite gradient under layer_norm with %o', (dialect, expected) => {
    const x = tensor([[2, 2, 2, 2]], { dtype: 'float64', requiresGrad: true });
    const scale = tensor([1, 1, 1, 1], { dtype: 'float64' });
    const shift = tensor([0, 0, 0, 0], { dtype: 'float64' });
    const output = callTensor('torchformer::layer_norm', x, scale, shift, 1e-6, dialect);
    output.backward({ gradient: tensor([[1, 2, 3, 4]], { dtype: 'float64' }) });
    numbers(x.grad as Tensor).forEach((value, index) => {
      expect(value / (expected[index] as number)).toBeCloseTo(1, 6);
    });
  });
});
