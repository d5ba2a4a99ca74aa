import { beforeEach, describe, expect, it } from 'vitest';
import { call, callTensor, manualSeed, tensor, type Tensor } from 'torchformer';
import { native } from '../../../dist/tensor/dispatch.js';
import { gradientError } from '../../support/gradcheck.js';
import { randomDoubles } from '../../support/numbers.js';

beforeEach(() => manualSeed(1));

type Case = [name: string, fn: (...inputs: Tensor[]) => Tensor | Tensor[], inputs: () => Tensor[]];

const causal = tensor(
  [
    [
      [1, 0, 0],
      [1, 1, 0],
      [0, 0, 0],
    ],
  ],
  { dtype: 'bool' },
);

const tokens = tensor(
  [
    [4, 0, 0],
    [2, 4, 1],
  ],
  { dtype: 'int64' },
);

const places = tensor(
  [
    [0, 1, 2],
    [0, 1, 1],
  ],
  { dtype: 'int64' },
);

/** The same draws at every call: a finite difference compares two of them. */
function seeded<T>(compute: () => T): T {
  manualSeed(7);
  return compute();
}

function feedForward(name: string, activation: string, dropout: number): Case {
  const gated = activation === 'swiglu';
  return [
    `${name} with ${activation} and dropout ${dropout}`,
    (x, w1, b1, w2, b2, w3, b3) =>
      seeded(() =>
        callTensor(name, x, w1, b1, w2, b2, dropout, {
          activation,
          ...(gated ? { w_3: w3, b_3: b3 } : {}),
        }),
      ),
    () => [
      randomDoubles(2, 3, 4),
      randomDoubles(5, 4),
      randomDoubles(5),
      randomDoubles(4, 5),
      randomDoubles(4),
      ...(gated ? [randomDoubles(5, 4), randomDoubles(5)] : []),
    ],
  ];
}

const sequences = tensor([0, 2, 2, 5], { dtype: 'int64' });
const keySequences = tensor([0, 1, 3, 4], { dtype: 'int64' });
const targets = tensor([2, 0, 6, 1], { dtype: 'int64' });

const cases: Case[] = [
  ...['torchformer::packed_attention', 'torchformer::packed_attention_reference'].flatMap(
    (name): Case[] => [
      [
        `${name} to other sequences`,
        (q, k, v) =>
          seeded(() => callTensor(name, q, k, v, sequences, keySequences, 2, false, 0.3)),
        () => [randomDoubles(5, 6), randomDoubles(4, 6), randomDoubles(4, 6)],
      ],
      [
        `${name} to what stands before`,
        (q, k, v) => seeded(() => callTensor(name, q, k, v, sequences, sequences, 2, true, 0.3)),
        () => [randomDoubles(5, 6), randomDoubles(5, 6), randomDoubles(5, 6)],
      ],
    ],
  ),
  ...['torchformer::linear', 'torchformer::linear_reference'].map((name): Case => [
    name,
    (x, weight, bias) => callTensor(name, x, weight, bias),
    () => [randomDoubles(2, 3, 4), randomDoubles(5, 4), randomDoubles(5)],
  ]),
  ...['torchformer::linear_cross_entropy', 'torchformer::linear_cross_entropy_reference'].flatMap(
    (name) =>
      ['cross_entropy', 'kl_divergence'].map((smoothing_form): Case => [
        `${name} smoothed to a ${smoothing_form}`,
        (x, weight, bias) =>
          (call(name, x, weight, bias, targets, 6, 0.1, 0.5, { smoothing_form }) as Tensor[])[0]!,
        () => [randomDoubles(4, 3), randomDoubles(7, 3), randomDoubles(7)],
      ]),
  ),
  ...['torchformer::dropout', 'torchformer::dropout_reference'].flatMap((name): Case[] => [
    [name, (x) => seeded(() => callTensor(name, x, 0.3)), () => [randomDoubles(4, 5)]],
    [
      `${name} with a residual`,
      (x, residual) => seeded(() => callTensor(name, x, 0.3, { residual })),
      () => [randomDoubles(4, 5), randomDoubles(4, 5)],
    ],
  ]),
  ...['torchformer::add_norm', 'torchformer::add_norm_reference'].flatMap((name): Case[] => [
    [
      name,
      (x, residual, scale, shift) =>
        seeded(() => call(name, x, residual, scale, shift, 0.3, 1e-3) as Tensor[]),
      () => [randomDoubles(2, 3, 5), randomDoubles(2, 3, 5), randomDoubles(5), randomDoubles(5)],
    ],
    [
      `${name} by the sample's deviation`,
      (x, residual, scale, shift) =>
        call(name, x, residual, scale, shift, 0, 1e-3, {
          sample_std: true,
          eps_outside: true,
        }) as Tensor[],
      () => [randomDoubles(6, 5), randomDoubles(6, 5), randomDoubles(5), randomDoubles(5)],
    ],
    [
      `${name} by the root mean square`,
      (x, residual, scale) =>
        seeded(
          () => call(name, x, residual, scale, null, 0.3, 1e-3, { centred: false }) as Tensor[],
        ),
      () => [randomDoubles(2, 3, 5), randomDoubles(2, 3, 5), randomDoubles(5)],
    ],
  ]),
  ...['torchformer::rms_norm', 'torchformer::rms_norm_reference'].map((name): Case => [
    name,
    (x, scale) => callTensor(name, x, scale, 1e-3),
    () => [randomDoubles(2, 3, 5), randomDoubles(5)],
  ]),
  ...['torchformer::layer_norm', 'torchformer::layer_norm_reference'].map((name): Case => [
    name,
    (x, scale, shift) => callTensor(name, x, scale, shift, 1e-3, { sample_std: true }),
    () => [randomDoubles(2, 3, 5), randomDoubles(5), randomDoubles(5)],
  ]),
  ...['torchformer::attention', 'torchformer::attention_reference'].map((name): Case => [
    name,
    (q, k, v) => seeded(() => call(name, q, k, v, causal, 0.2, { need_weights: true }) as Tensor[]),
    () => [randomDoubles(2, 3, 4), randomDoubles(2, 3, 4), randomDoubles(2, 3, 5)],
  ]),
  ...['torchformer::embed', 'torchformer::embed_reference'].flatMap((name): Case[] => [
    [
      name,
      (weight) => seeded(() => callTensor(name, weight, tokens, 2.5, null, null, 0.3)),
      () => [randomDoubles(5, 3)],
    ],
    [
      `${name} with learned positions`,
      (weight, table) => seeded(() => callTensor(name, weight, tokens, 2.5, table, places, 0.3)),
      () => [randomDoubles(5, 3), randomDoubles(4, 3)],
    ],
  ]),
  ...['torchformer::feed_forward', 'torchformer::feed_forward_reference'].flatMap((name) =>
    ['relu', 'gelu', 'swiglu'].flatMap((activation) => [
      feedForward(name, activation, 0),
      feedForward(name, activation, 0.25),
    ]),
  ),
];

describe('finite differences in float64 confirm the gradients of', () => {
  it.each(cases)('%s', (_name, fn, inputs) => {
    expect(gradientError(fn, inputs())).toBeLessThan(1e-8);
  });
});

it('no op of ours is without such a test', () => {
  // The steps of optimizers have no gradient.
  const tested = new Set([
    'torchformer::adafactor_',
    'torchformer::adafactor_reference_',
    'torchformer::adam_rows_',
    'torchformer::adam_rows_.tensor_lr',
    ...cases.map(([name]) => name.split(' ')[0]),
  ]);
  const own = native()
    .listOps()
    .filter((name) => name.startsWith('torchformer::'));
  expect(own.filter((name) => !tested.has(name))).toEqual([]);
});
