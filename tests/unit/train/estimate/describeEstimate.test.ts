import { expect, test } from 'vitest';
import { describeEstimate, type MemoryEstimate, type TimeEstimate } from 'torchformer';
import { extrapolated } from '../../../../dist/train/estimate/extrapolated.js';

const memory: MemoryEstimate = {
  weights: 3e8,
  gradients: 3e8,
  optimizer: 5e8,
  optimizerName: 'Adam',
  averages: 0,
  activations: 1e8,
  largestBatch: { pairs: 100, tokens: 3000, wasRun: true },
  total: 12e8,
  available: 158e8,
};
const time: TimeEstimate = { token: 1e-4, update: 0.01, epoch: 125, stepsPerEpoch: 9, total: 1500 };
const parameters = { all: 75e6, trainable: 75e6 };

test('memory in one unit, and the time', () => {
  expect(describeEstimate({ parameters, memory, time })).toEqual([
    'memory: 1.2 GB = weights 0.3 + gradients 0.3 + Adam 0.5 + batch 0.1 (the largest, 3,000 tokens); ' +
      '15.8 GB available',
    'time: 2:05 an epoch, 25:00 in all',
  ]);
});

test('only the memory that is known, if nothing was measured', () => {
  const unmeasured = { ...memory, activations: null, largestBatch: null, total: 11e8 };
  expect(describeEstimate({ parameters, memory: unmeasured, time: null })).toEqual([
    'memory: 1.1 GB = weights 0.3 + gradients 0.3 + Adam 0.5; 15.8 GB available',
  ]);
});

test('averages have a part of their own, and an optimizer may not tell its state', () => {
  const [line] = describeEstimate({
    parameters,
    memory: { ...memory, averages: 3e8, optimizer: null, optimizerName: 'Mine', total: 1e9 },
    time,
  });
  expect(line).toContain('Mine unknown + averages 0.3 + batch 0.1');
});

test.each([
  [0.25, 'time: 0.3 s an epoch'],
  [42, 'time: 0:42 an epoch'],
  [59.7, 'time: 1:00 an epoch'],
  [3725, 'time: 1:02:05 an epoch'],
])('%d seconds: %s', (epoch, expected) => {
  const [, line] = describeEstimate({ parameters, memory, time: { ...time, epoch, total: null } });
  expect(line).toBe(expected);
});

test('a batch is extrapolated on the line through two of its parts', () => {
  // 100 bytes that every batch has, and 10 for each token.
  const small = { tokens: 10, bytes: 200 };
  const larger = { tokens: 50, bytes: 600 };
  expect(extrapolated(small, larger, 400)).toBe(4100);
});

test('two parts of the same size are extrapolated in proportion', () => {
  const part = { tokens: 10, bytes: 200 };
  expect(extrapolated(part, part, 30)).toBe(600);
});
