import { beforeEach, describe, expect, it } from 'vitest';
import {
  crossEntropy,
  Linear,
  linearCrossEntropy,
  manualSeed,
  memory,
  noGrad,
  randn,
  tensor,
  tidy,
  type Tensor,
} from 'torchformer';

beforeEach(() => manualSeed(1));

/** A layer with weights that can be reckoned with by hand: scores [x, 0] and a bias. */
function twoClasses(bias: [number, number] = [0, 0]): Linear {
  const linear = new Linear(1, 2);
  noGrad(() => {
    linear.weight.copy_(tensor([[1], [0]]));
    linear.bias?.copy_(tensor(bias));
  });
  return linear;
}

function ids(...values: number[]): Tensor {
  return tensor(values, { dtype: 'int64' });
}

describe('linearCrossEntropy', () => {
  it('is -log of the probability of the target, summed', () => {
    // Scores [0, 0] and [ln 3, 0]: probabilities 1/2 and 3/4.
    const { loss, tokenLosses } = linearCrossEntropy(
      tensor([[0], [Math.log(3)]]),
      twoClasses(),
      ids(0, 0),
    );
    expect(loss.item()).toBeCloseTo(Math.log(2) + Math.log(4 / 3), 6);
    expect(tokenLosses.toArray()).toEqual([
      expect.closeTo(Math.log(2), 6),
      expect.closeTo(Math.log(4 / 3), 6),
    ]);
  });

  it('multiplies the sum, and the gradients, with scale', () => {
    const x = tensor([[0]]).requiresGrad_();
    const { loss } = linearCrossEntropy(x, twoClasses(), ids(0), { scale: 4 });
    loss.backward();
    expect(loss.item()).toBeCloseTo(4 * Math.log(2), 6);
    // d(-log softmax(x, 0)[0]) / dx = 1/2 - 1
    expect(x.grad?.item()).toBeCloseTo(-2, 6);
  });

  it('leaves ignored rows out, and is 0 with zero gradients when all are', () => {
    const linear = twoClasses();
    const x = tensor([[5], [1]]).requiresGrad_();
    const { loss, tokenLosses, correct } = linearCrossEntropy(x, linear, ids(1, 1), {
      ignoreIndex: 1,
    });
    loss.backward();
    expect(loss.item()).toBe(0);
    expect(correct.item()).toBe(0);
    expect(tokenLosses.toArray()).toEqual([0, 0]);
    expect(x.grad?.toArray()).toEqual([[0], [0]]);
    expect(linear.weight.grad?.toArray()).toEqual([[0], [0]]);
  });

  it('takes no rows at all', () => {
    const linear = new Linear(3, 5);
    const { loss } = linearCrossEntropy(
      randn([0, 3]).requiresGrad_(),
      linear,
      tensor([], { dtype: 'int64' }),
    );
    loss.backward();
    expect(loss.item()).toBe(0);
    expect(linear.weight.grad?.abs().sum().item()).toBe(0);
  });

  it('spreads labelSmoothing over all classes', () => {
    // Probabilities 3/4, 1/4; targets 0.9 and 0.1 with smoothing 0.2.
    const { loss } = linearCrossEntropy(tensor([[Math.log(3)]]), twoClasses(), ids(0), {
      labelSmoothing: 0.2,
    });
    expect(loss.item()).toBeCloseTo(0.9 * Math.log(4 / 3) + 0.1 * Math.log(4), 6);
  });

  describe('with the form of The Annotated Transformer', () => {
    // Scores of 4 classes whose probabilities are the given ones, for an input of 1.
    const classesOf = (...probabilities: number[]) => {
      const linear = new Linear(1, probabilities.length, { bias: false });
      noGrad(() => linear.weight.copy_(tensor(probabilities.map((p) => [Math.log(p)]))));
      return linear;
    };
    const options = { ignoreIndex: 0, labelSmoothing: 0.2, smoothingForm: 'klDivergence' } as const;

    it('gives the other words the smoothing, the padding nothing', () => {
      // Targets 0, 0.8, 0.1, 0.1: divergence = sum of t (log t - log p).
      const { loss } = linearCrossEntropy(
        tensor([[1]]),
        classesOf(0.4, 0.3, 0.2, 0.1),
        ids(1),
        options,
      );
      const expected =
        0.8 * Math.log(0.8 / 0.3) + 0.1 * Math.log(0.1 / 0.2) + 0.1 * Math.log(0.1 / 0.1);
      expect(loss.item()).toBeCloseTo(expected, 6);
    });

    it('is 0, without a gradient, for the distribution it asks for', () => {
      const linear = classesOf(1e-30, 0.8, 0.1, 0.1);
      const x = tensor([[1]]).requiresGrad_();
      const { loss } = linearCrossEntropy(x, linear, ids(1), options);
      loss.backward();
      expect(loss.item()).toBeCloseTo(0, 5);
      expect(linear.weight.grad?.abs().max().item()).toBeLessThan(1e-6);
    });

    it('has gradients probability - target', () => {
      const linear = classesOf(0.4, 0.3, 0.2, 0.1);
      linearCrossEntropy(tensor([[1]]), linear, ids(1), options).loss.backward();
      const gradient = (linear.weight.grad?.flatten().toArray() ?? []) as number[];
      [0.4, 0.3 - 0.8, 0.2 - 0.1, 0.1 - 0.1].forEach((value, index) =>
        expect(gradient[index]).toBeCloseTo(value, 6),
      );
    });

    it('shares among all words but the target where no id is ignored, as fairseq does', () => {
      const { loss } = linearCrossEntropy(tensor([[1]]), classesOf(0.5, 0.25, 0.25), ids(0), {
        labelSmoothing: 0.2,
        smoothingForm: 'klDivergence',
      });
      const expected = 0.8 * Math.log(0.8 / 0.5) + 0.2 * Math.log(0.1 / 0.25);
      expect(loss.item()).toBeCloseTo(expected, 6);
    });

    it('refuses a vocabulary with nobody to share with', () => {
      const call = () => linearCrossEntropy(tensor([[1]]), classesOf(0.5, 0.5), ids(1), options);
      expect(call).toThrow(/a class other than the target and ignoreIndex, got 2 classes/);
    });
  });

  it('counts rows whose best score is the target’s', () => {
    const { correct } = linearCrossEntropy(tensor([[1], [1], [-1]]), twoClasses(), ids(0, 1, 1));
    expect(correct.item()).toBe(2);
  });

  it('counts the first of equal best scores alone, as argmax', () => {
    const { correct } = linearCrossEntropy(tensor([[0], [0]]), twoClasses(), ids(0, 1));
    expect(correct.item()).toBe(1);
  });

  it('says so when the graph is gone', () => {
    const { loss } = linearCrossEntropy(tensor([[1]]), twoClasses(), ids(0));
    loss.backward();
    expect(() => {
      loss.backward();
    }).toThrow(/second time/);
  });

  it('is finite for scores far apart', () => {
    const { loss } = linearCrossEntropy(tensor([[1e4], [-1e4]]), twoClasses(), ids(1, 1));
    expect(loss.item()).toBe(1e4);
  });

  it('says NaN for NaN', () => {
    const { loss } = linearCrossEntropy(tensor([[NaN]]), twoClasses(), ids(0));
    expect(loss.item()).toBeNaN();
  });

  // 256 rows are a chunk; 2 classes and 9 features fill no vector register.
  it.each([
    [1, 3, 2],
    [255, 9, 11],
    [256, 9, 11],
    [257, 16, 64],
    [700, 5, 4099],
  ])('of %i rows, %i features, %i classes equals crossEntropy, gradients too', (n, d, classes) => {
    const linear = new Linear(d, classes);
    const x = randn([n, d]).requiresGrad_();
    const targets = ids(...Array.from({ length: n }, (_, i) => (i * 7) % classes));
    const gradients = (loss: Tensor) => {
      for (const t of [x, linear.weight, linear.bias as Tensor]) t.grad = null;
      loss.backward();
      return [x, linear.weight, linear.bias as Tensor].map((t) => t.grad?.clone() as Tensor);
    };
    const fused = linearCrossEntropy(x, linear, targets, { ignoreIndex: 1 }).loss;
    const plain = crossEntropy(linear.forward(x), targets, { ignoreIndex: 1 });
    expect(Math.abs(fused.item() / plain.item() - 1)).toBeLessThan(1e-6);
    const expected = gradients(plain);
    gradients(fused).forEach((gradient, index) => {
      const wanted = expected[index] as Tensor;
      const largest = wanted.abs().max().item();
      expect(gradient.sub(wanted).abs().max().item() / largest).toBeLessThan(1e-5);
    });
  });

  it('can be gone back through twice, and leaves no tensor behind', () => {
    const linear = new Linear(4, 6);
    const x = randn([3, 4]).requiresGrad_();
    const before = memory().tensors;
    tidy(() => {
      const { loss } = linearCrossEntropy(x, linear, ids(0, 1, 2));
      loss.backward({ retainGraph: true });
      const once = linear.weight.grad?.clone() as Tensor;
      loss.backward();
      expect(linear.weight.grad?.sub(once.mul(2)).abs().max().item()).toBeLessThan(1e-6);
      linear.zeroGrad();
      x.grad = null;
    });
    expect(memory().tensors).toBe(before);
  });

  it.each<[string, () => unknown, RegExp]>([
    [
      'a target beyond the classes',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(2)),
      /holds the id 2/,
    ],
    [
      'a negative target',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(-1)),
      /holds the id -1/,
    ],
    [
      'rows and targets of different number',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(0, 1)),
      /\[N\]/,
    ],
    [
      'features that do not fit',
      () => linearCrossEntropy(tensor([[1, 2]]), twoClasses(), ids(0)),
      /last dimension/,
    ],
    [
      'targets that are no ids',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), tensor([0.5])),
      /int64 or int32/,
    ],
    [
      'smoothing beyond 1',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(0), { labelSmoothing: 2 }),
      /labelSmoothing/,
    ],
    [
      'a scale that is not finite',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(0), { scale: NaN }),
      /scale must be a finite number, got NaN/,
    ],
    [
      'a scale that is no number',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(0), { scale: {} as never }),
      /scale must be a finite number, got an Object/,
    ],
    [
      'a layer with hooks',
      () => {
        const linear = twoClasses();
        linear.registerForwardHook((_module, _inputs, output) => output.mul(2));
        return linearCrossEntropy(tensor([[1]]), linear, ids(0));
      },
      /hooks or a user-defined forward/,
    ],
    [
      'what is no layer',
      () => linearCrossEntropy(tensor([[1]]), null as never, ids(0)),
      /linear must be/,
    ],
    [
      'an unknown option',
      () => linearCrossEntropy(tensor([[1]]), twoClasses(), ids(0), { smooth: 1 } as never),
      /smooth/,
    ],
  ])('refuses %s', (_name, run, message) => {
    expect(run).toThrow(message);
  });
});
