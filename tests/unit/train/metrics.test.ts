import { describe, expect, test } from 'vitest';
import { BestModel, historyJson, TokenMean } from 'torchformer';

describe('the loss of an epoch is the mean over its tokens', () => {
  test('9 tokens at 1.0 and 1 token at 3.0 give 1.2, not the mean of the batches', () => {
    const mean = new TokenMean();
    mean.add(9 * 1, 9);
    mean.add(1 * 3, 1);
    expect(mean.mean).toBeCloseTo(1.2, 12);
    expect(mean.tokens).toBe(10);
  });

  test('before the first token there is no mean', () => {
    expect(new TokenMean().mean).toBeNaN();
  });
});

describe('the best model', () => {
  const bestOf = (losses: number[]) => {
    const best = new BestModel();
    const taken = losses.map((loss, index) => best.consider(index + 1, loss));
    return { best: best.best, taken };
  };
  const meanOf = (batchLosses: number[]) => {
    const mean = new TokenMean();
    for (const loss of batchLosses) mean.add(loss * 5, 5);
    return mean.mean;
  };

  test('is that of the lowest epoch mean, not of the lowest last batch', () => {
    const losses = [
      [1.0, 1.0],
      [3.0, 0.5],
    ].map(meanOf);
    expect(bestOf(losses).best).toEqual({ epoch: 1, loss: 1 });
  });

  test('is compared with the best before, not only with the epoch before', () => {
    expect(bestOf([1.0, 2.0, 1.5])).toEqual({
      best: { epoch: 1, loss: 1 },
      taken: [true, false, false],
    });
  });

  test('is never one whose loss is not finite', () => {
    expect(bestOf([NaN, 1.0, NaN])).toEqual({
      best: { epoch: 2, loss: 1 },
      taken: [false, true, false],
    });
    expect(bestOf([NaN, -Infinity, Infinity]).best).toBeNull();
  });

  test('of two equal losses is the earlier', () => {
    expect(bestOf([2, 1, 1]).taken).toEqual([true, true, false]);
  });

  test('of a run that is continued has to be beaten', () => {
    const best = new BestModel({ epoch: 4, loss: 0.5 });
    expect(best.consider(5, 0.6)).toBe(false);
    expect(best.consider(6, 0.4)).toBe(true);
    expect(best.best).toEqual({ epoch: 6, loss: 0.4 });
  });
});

test('history.json keeps losses that JSON has no number for', () => {
  const text = historyJson({
    steps: [
      { step: 1, epoch: 1, loss: NaN, tokens: 3, learningRate: 0.1, gradientNorm: 1, seconds: 1 },
    ],
    validationBatches: [{ epoch: 1, batch: 1, loss: Infinity, tokens: 3 }],
    validations: [],
    epochs: [],
  });
  expect(JSON.parse(text)).toMatchObject({
    steps: [{ loss: 'NaN' }],
    validationBatches: [{ loss: 'Infinity' }],
  });
});
