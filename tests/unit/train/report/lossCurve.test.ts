/** `loss.svg`: the losses of a run as a picture. */
import { describe, expect, test } from 'vitest';
import { lossCurve, type EpochRecord, type History } from 'torchformer';
import { epochOf, validationRecord } from './trainingEvents.js';

const historyOf = (
  losses: number[],
  epochs: EpochRecord[],
  validations: History['validations'] = [],
): History => ({
  steps: losses.map((loss, index) => ({
    step: index + 1,
    epoch: 1,
    loss,
    tokens: 10,
    learningRate: 0.1,
    gradientNorm: 1,
    seconds: index,
  })),
  validationBatches: [],
  validations,
  epochs,
});

/** The curves' path data, in the order step, train, validation. */
const curvesOf = (svg: string) =>
  [...svg.matchAll(/<path d="([^"]*)"[^>]*stroke-linejoin/g)].map(([, d]) => d ?? '');

describe('the loss picture', () => {
  const svg = lossCurve(historyOf([4, 3, 2, 1], [epochOf(1, 2, 3.5, 3), epochOf(2, 4, 1.5, 2)]));

  test('has a curve of the steps, of the training means and of the validation means', () => {
    const [steps, train, validation] = curvesOf(svg);
    expect(steps?.match(/[ML]/g)).toHaveLength(4);
    expect(train?.match(/[ML]/g)).toHaveLength(2);
    expect(validation?.match(/[ML]/g)).toHaveLength(2);
    expect(svg.match(/<circle/g)).toHaveLength(4);
  });

  test('has axes with numbers, their names and a legend', () => {
    for (const text of [
      '>step<',
      '>loss per target token<',
      '>train, each step<',
      '>validation<',
      '>4<',
      '>1<',
    ]) {
      expect(svg).toContain(text);
    }
  });

  test('draws a lower loss further down and a later step further right', () => {
    const points = [...(curvesOf(svg)[0] ?? '').matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(
      ([, x, y]) => [Number(x), Number(y)] as const,
    );
    for (let index = 1; index < points.length; index++) {
      expect(points[index]?.[0]).toBeGreaterThan(points[index - 1]?.[0] as number);
      expect(points[index]?.[1]).toBeGreaterThan(points[index - 1]?.[1] as number);
    }
  });

  test('has each validation of a run that validates within epochs', () => {
    const validations = [1, 2, 3, 4].map((step) => validationRecord(step, { loss: 4 / step }));
    const [, , validation] = curvesOf(
      lossCurve(historyOf([4, 3, 2, 1], [epochOf(1, 4, 2.5, 1)], validations)),
    );
    expect(validation?.match(/[ML]/g)).toHaveLength(4);
  });

  test('leaves a gap where a loss is not finite', () => {
    const [steps] = curvesOf(lossCurve(historyOf([4, 3, NaN, 1, 2], [])));
    expect(steps?.match(/M/g)).toHaveLength(2);
    expect(steps).not.toContain('NaN');
  });

  test('of a long run stays small', () => {
    const long = lossCurve(
      historyOf(
        Array.from({ length: 200_000 }, (_, step) => 5 / (1 + step)),
        [],
      ),
    );
    expect(long.length).toBeLessThan(40_000);
  });

  test('of a run without any finite loss says so', () => {
    for (const losses of [[], [NaN]]) {
      const empty = lossCurve(historyOf(losses, []));
      expect(empty).toContain('no finite loss yet');
      expect(empty).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  test('of one step, or of equal losses, has a scale', () => {
    for (const losses of [[2], [2, 2, 2], [0, 0]]) {
      expect(lossCurve(historyOf(losses, []))).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  test('has its title escaped', () => {
    expect(lossCurve(historyOf([1], []), { title: 'a<b & c' })).toContain('a&lt;b &amp; c');
  });
});
