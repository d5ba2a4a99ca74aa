import { describe, expect, it } from 'vitest';
import { crossEntropy, CrossEntropyLoss, memory, tensor } from 'torchformer';
import type { CrossEntropyOptions, Tensor } from 'torchformer';
import { numbers } from '../../../support/numbers.js';

const ln = Math.log;
/** Probabilities 1/4, 1/4, 1/2 and 1/8, 3/8, 1/2. */
const logits = () =>
  tensor(
    [
      [ln(1), ln(1), ln(2)],
      [ln(1), ln(3), ln(4)],
    ],
    { requiresGrad: true },
  );
const targets = (...ids: number[]) => tensor(ids, { dtype: 'int64' });

function loss(ids: number[], options?: CrossEntropyOptions): number {
  return crossEntropy(logits(), targets(...ids), options).item();
}

describe('crossEntropy', () => {
  it('sums -log of the target probabilities', () => {
    expect(loss([2, 1])).toBeCloseTo(ln(2) + ln(8 / 3), 6);
  });

  it('leaves ignored targets out, of the mean too', () => {
    expect(loss([2, 0], { ignoreIndex: 0 })).toBeCloseTo(ln(2), 6);
    expect(loss([2, 0], { ignoreIndex: 0, reduction: 'mean' })).toBeCloseTo(ln(2), 6);
    expect(loss([2, 1], { reduction: 'mean' })).toBeCloseTo((ln(2) + ln(8 / 3)) / 2, 6);
    expect(loss([2, -100], { ignoreIndex: -100 })).toBeCloseTo(ln(2), 6);
  });

  it('gives one loss a target on request', () => {
    const each = crossEntropy(logits().reshape(1, 2, 3), targets(2, 0).reshape(1, 2), {
      ignoreIndex: 0,
      reduction: 'none',
    });
    expect(each.shape).toEqual([1, 2]);
    expect(numbers(each)[0]).toBeCloseTo(ln(2), 6);
    expect(numbers(each)[1]).toBe(0);
  });

  it('takes log-probabilities as well', () => {
    const direct = crossEntropy(logits().logSoftmax(-1), targets(2, 1)).item();
    expect(direct).toBeCloseTo(loss([2, 1]), 6);
  });

  it.each(['sum', 'mean'] as const)(
    'is 0, with gradients 0, without counted targets (%s)',
    (reduction) => {
      const input = logits();
      const result = crossEntropy(input, targets(0, 0), { ignoreIndex: 0, reduction });
      expect(result.item()).toBe(0);
      result.backward();
      expect(numbers(input.grad as Tensor)).toEqual([0, 0, 0, 0, 0, 0]);
    },
  );

  it('has the gradient softmax - target', () => {
    const input = logits();
    crossEntropy(input, targets(2, 0), { ignoreIndex: 0 }).backward();
    const gradient = numbers(input.grad as Tensor);
    [0.25, 0.25, -0.5, 0, 0, 0].forEach((value, index) =>
      expect(gradient[index]).toBeCloseTo(value, 6),
    );
  });

  it('computes half precision in float32', () => {
    const half = logits().detach().to({ dtype: 'bfloat16' });
    const result = crossEntropy(half, targets(2, 1));
    expect(result.dtype).toBe('float32');
    expect(result.item()).toBe(crossEntropy(half.float(), targets(2, 1)).item());
  });

  it('names targets outside the classes, and shapes that do not fit', () => {
    expect(() => loss([2, 3])).toThrow(/the id 3 at \[1\].*3 entries/);
    expect(() => loss([2, -100])).toThrow(RangeError);
    expect(() => crossEntropy(logits(), targets(1))).toThrow(/\[2, 3\] and \[1\]/);
    expect(() => loss([1, 1], { reduction: 'avg' as 'sum' })).toThrow(/'sum', 'mean' or 'none'/);
    expect(() => loss([1, 1], { ignore: 0 } as object)).toThrow(/valid options: ignoreIndex/);
  });

  it('spreads labelSmoothing over all classes, or over the other words', () => {
    const smoothing = { labelSmoothing: 0.2, ignoreIndex: 0 };
    // Probabilities 1/4, 1/4, 1/2; targets 1/15, 1/15, 13/15.
    expect(loss([2, 0], smoothing)).toBeCloseTo((13 / 15) * ln(2) + (2 / 15) * ln(4), 6);
    // Targets 0, 0.2, 0.8.
    expect(loss([2, 0], { ...smoothing, smoothingForm: 'klDivergence' })).toBeCloseTo(
      0.2 * ln(0.2 / 0.25) + 0.8 * ln(0.8 / 0.5),
      6,
    );
    const form = 'kl' as 'klDivergence';
    expect(() => loss([2, 1], { smoothingForm: form })).toThrow(/'crossEntropy' or 'klDivergence'/);
    expect(() => loss([2, 1], { labelSmoothing: 1.1 })).toThrow(/from 0 to 1/);
  });

  it('is a module too', () => {
    const criterion = new CrossEntropyLoss({ ignoreIndex: 0, reduction: 'sum' });
    expect(criterion.forward(logits(), targets(2, 0)).item()).toBeCloseTo(ln(2), 6);
    const options = { labelSmoothing: 0.2, smoothingForm: 'klDivergence', ignoreIndex: 0 } as const;
    const smoothed = new CrossEntropyLoss(options).forward(logits(), targets(2, 0)).item();
    expect(smoothed).toBe(loss([2, 0], options));
  });

  it('leaves only its result behind', () => {
    const [input, wanted] = [logits(), targets(2, 0)];
    const before = memory().tensors;
    for (const reduction of ['sum', 'mean', 'none'] as const) {
      crossEntropy(input, wanted, { ignoreIndex: 0, reduction }).dispose();
    }
    expect(memory().tensors).toBe(before);
  });
});
