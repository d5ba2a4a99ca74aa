import { beforeEach, describe, expect, it } from 'vitest';
import {
  Adam,
  AdamW,
  Linear,
  manualSeed,
  memory,
  ones,
  Optimizer,
  Parameter,
  SGD,
  tensor,
  tidy,
  TorchError,
  zeros,
} from 'torchformer';
import type { AdamSettings, Tensor } from 'torchformer';
import { numbers } from '../../support/numbers.js';

beforeEach(() => manualSeed(4));

function parameter(...values: number[]): Parameter {
  return tidy(() => new Parameter(tensor(values, { dtype: 'float64' })));
}

/** Sets the gradient. */
function push(target: Tensor, ...values: number[]): void {
  target.grad = tensor(values, { dtype: 'float64' });
}

/** One weight under Adam, in plain numbers. */
function adamByHand(
  start: number,
  gradients: number[],
  { lr, betas: [b1, b2], eps, weightDecay }: AdamSettings,
  decoupled: boolean,
): number {
  let [value, mean, square] = [start, 0, 0];
  gradients.forEach((given, index) => {
    const gradient = decoupled ? given : given + weightDecay * value;
    if (decoupled) value *= 1 - lr * weightDecay;
    mean = b1 * mean + (1 - b1) * gradient;
    square = b2 * square + (1 - b2) * gradient ** 2;
    const step = index + 1;
    const root = Math.sqrt(square / (1 - b2 ** step)) + eps;
    value -= (lr * (mean / (1 - b1 ** step))) / root;
  });
  return value;
}

const settings: AdamSettings = { lr: 0.1, betas: [0.8, 0.9], eps: 1e-3, weightDecay: 0.2 };
const gradients = [0.5, -2, 0.1];

describe.each([
  ['Adam', Adam, false],
  ['AdamW', AdamW, true],
] as const)('%s', (_name, Kind, decoupled) => {
  it('follows its formula', () => {
    const weight = parameter(1, -3);
    const optimizer = new Kind([weight], settings);
    for (const gradient of gradients) {
      push(weight, gradient, 2 * gradient);
      optimizer.step();
    }
    const doubled = gradients.map((gradient) => 2 * gradient);
    const [first, second] = numbers(weight) as [number, number];
    expect(first).toBeCloseTo(adamByHand(1, gradients, settings, decoupled), 9);
    expect(second).toBeCloseTo(adamByHand(-3, doubled, settings, decoupled), 9);
  });

  it("has PyTorch's defaults", () => {
    expect(new Kind([parameter(1)]).paramGroups[0]).toMatchObject({
      lr: 1e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: decoupled ? 0.01 : 0,
    });
  });

  it('steps off the event loop to the same bits', async () => {
    const results = [];
    for (const inBackground of [false, true]) {
      const weight = parameter(1, -3);
      const optimizer = new Kind([weight], settings);
      for (const gradient of gradients) {
        push(weight, gradient, gradient);
        if (inBackground) await optimizer.stepAsync();
        else optimizer.step();
      }
      results.push(numbers(weight));
    }
    expect(results[1]).toEqual(results[0]);
  });
});

describe('Adam', () => {
  it('takes changes of the learning rate from the next step on', () => {
    const weight = parameter(1);
    const optimizer = new Adam([weight], { lr: 0.1 });
    push(weight, 1);
    optimizer.step();
    expect(numbers(weight)[0]).toBeCloseTo(0.9, 6);
    optimizer.lr = 0;
    optimizer.step();
    expect(numbers(weight)[0]).toBeCloseTo(0.9, 6);
    optimizer.lr = 0.2;
    optimizer.step();
    expect(numbers(weight)[0]).toBeCloseTo(0.7, 6);
    expect(() => (optimizer.lr = NaN)).toThrow(RangeError);
  });

  it('skips parameters without gradient, and counts their steps apart', () => {
    const [a, b] = [parameter(1), parameter(1)];
    const optimizer = new Adam([a, b], { lr: 0.1 });
    push(a, 1);
    optimizer.step();
    expect(numbers(b)).toEqual([1]);
    expect([...optimizer.stateDict().tensors.keys()]).toEqual([
      '0.step',
      '0.exp_avg',
      '0.exp_avg_sq',
    ]);
    push(b, 1);
    optimizer.step();
    const { tensors } = optimizer.stateDict();
    expect([tensors.get('0.step')?.item(), tensors.get('1.step')?.item()]).toEqual([2, 1]);
    // A first step of size lr, whatever the other parameter has done.
    expect(numbers(b)[0]).toBeCloseTo(0.9, 6);
  });

  it('gives groups their own settings', () => {
    const [a, b] = [parameter(1), parameter(1)];
    const optimizer = new Adam([{ params: [a], lr: 0.5 }, { params: [b] }], { lr: 0.1 });
    push(a, 1);
    push(b, 1);
    optimizer.step();
    expect(numbers(a)[0]).toBeCloseTo(0.5, 6);
    expect(numbers(b)[0]).toBeCloseTo(0.9, 6);
  });

  it('updates parameters of several dtypes', () => {
    const double = parameter(1);
    const single = new Parameter(ones([1]));
    const optimizer = new Adam([double, single], { lr: 0.1 });
    push(double, 1);
    single.grad = ones([1]);
    optimizer.step();
    expect(numbers(single)[0]).toBeCloseTo(0.9, 6);
    expect(numbers(double)[0]).toBeCloseTo(0.9, 6);
  });

  it('takes gradients that are not contiguous', () => {
    const weight = new Parameter(zeros([2, 3]));
    weight.grad = tensor([
      [1, -1],
      [1, -1],
      [-1, 1],
    ]).t();
    new Adam([weight], { lr: 1 }).step();
    expect(numbers(weight).map(Math.round)).toEqual([-1, -1, 1, 1, 1, -1]);
  });

  it('refuses a state that no longer fits, before anything changes', () => {
    const linear = new Linear(2, 2);
    const optimizer = new Adam(linear.parameters());
    linear
      .forward(ones([1, 2]))
      .sum()
      .backward();
    optimizer.step();
    linear.double();
    const before = numbers(linear.weight);
    expect(() => optimizer.step()).toThrow(
      /state "exp_avg" is \[2, 2\] of float32.*float64.*create the optimizer again/,
    );
    expect(numbers(linear.weight)).toEqual(before);
  });

  it('keeps on training after its state is loaded again for another dtype', () => {
    const linear = new Linear(2, 2);
    const optimizer = new Adam(linear.parameters());
    linear
      .forward(ones([1, 2]))
      .sum()
      .backward();
    optimizer.step();
    linear.double();
    optimizer.loadStateDict(optimizer.stateDict());
    optimizer.step();
    expect(optimizer.stateDict().tensors.get('0.exp_avg')?.dtype).toBe('float64');
    expect(optimizer.stateDict().tensors.get('0.step')?.item()).toBe(2);
  });

  it.each([
    [{ lr: -1 }, /lr must be a finite number of at least 0, got -1/],
    [{ lr: '1' }, /lr must be a finite number of at least 0, got the string "1"/],
    [{ betas: [0.9, 1] }, /betas\[1\] must be from 0 to below 1, got 1/],
    [{ betas: 0.9 }, /betas must be two numbers/],
    [{ eps: NaN }, /eps must be/],
    [{ learningRate: 1 }, /"learningRate"; valid options: betas, eps, lr, weightDecay/],
  ])('refuses %j', (options, message) => {
    expect(() => new Adam([parameter(1)], options as Partial<AdamSettings>)).toThrow(message);
  });

  it('refuses what cannot be optimized', () => {
    const weight = parameter(1);
    expect(() => new Adam([])).toThrow(/no parameters/);
    expect(() => new Adam([weight, weight])).toThrow(/is given twice/);
    expect(() => new Adam([weight.mul(2)])).toThrow(/floating-point leaf/);
    expect(() => new Adam([tensor([1], { dtype: 'int64' })])).toThrow(/floating-point leaf/);
    expect(() => new Adam(new Linear(1, 1) as unknown as Tensor[])).toThrow(
      /model\.parameters\(\)/,
    );
    expect(() => new Adam([3] as unknown as Tensor[])).toThrow(TypeError);
    for (const params of [undefined, null, 3, 'x', {}, class {}]) {
      expect(() => new Adam([{ params: params as never }])).toThrow(
        /^Adam: params of a group must be a list of tensors/,
      );
    }
    expect(() => new Adam([weight], { lr: null as never })).toThrow(
      /lr must be a finite number of at least 0, got null/,
    );
  });

  it('is needed: the base alone, or a class without its methods, is refused', () => {
    const bare = Optimizer as unknown as new (...inputs: unknown[]) => object;
    for (const inputs of [[], [[parameter(1)]], [[parameter(1)], {}, { lr: 1 }]]) {
      expect(() => new bare(...inputs)).toThrow(TypeError);
      expect(() => new bare(...inputs)).toThrow(/^Optimizer: .* base .* use Adam, AdamW or/);
    }
    class Mine extends bare {
      checkSettings(): void {}
    }
    expect(() => new Mine([parameter(1)], {}, { lr: 1 })).toThrow(
      /^Mine: .* lacks initialState, updateGroup/,
    );
    class Whole extends Mine {
      initialState(): object {
        return {};
      }
      updateGroup(): never[] {
        return [];
      }
    }
    expect(() => new Whole([parameter(1)])).toThrow(
      /^Whole: super.* default settings, .* undefined/,
    );
    expect(new Whole([parameter(1)], {}, { lr: 1 })).toBeInstanceOf(Optimizer);
  });
});

describe('state of an optimizer', () => {
  it('continues to the same bits in another one', () => {
    const [a, b] = [parameter(1, 2), parameter(1, 2)];
    const first = new Adam([a], settings);
    push(a, 1, -1);
    first.step();
    b.detach().copy_(a);
    const second = new Adam([b]);
    const saved = first.stateDict();
    second.loadStateDict({ ...saved, groups: JSON.parse(JSON.stringify(saved.groups)) as never });
    for (const weight of [a, b]) push(weight, 0.3, 5);
    first.step();
    second.step();
    expect(numbers(b)).toEqual(numbers(a));
    expect(second.lr).toBe(0.1);
  });

  it('is refused as a whole when it does not fit', () => {
    const weight = parameter(1, 2);
    const optimizer = new Adam([weight]);
    push(weight, 1, 1);
    optimizer.step();
    const { tensors, groups } = optimizer.stateDict();
    const load = (changed: [string, Tensor][]) => () =>
      new Adam([parameter(1, 2)]).loadStateDict({
        tensors: new Map([...tensors, ...changed]),
        groups,
      });
    expect(load([['0.exp_avg', ones([3])]])).toThrow(/"exp_avg" is \[3\] for a parameter of \[2\]/);
    expect(load([['0.velocity', ones([2])]])).toThrow(/velocity instead of exp_avg/);
    expect(load([['7.step', ones([])]])).toThrow(/"7\.step" belongs to no parameter/);
    expect(load([['7.step', ones([])]])).toThrow(TorchError);
    expect(() => new Adam([parameter(1), parameter(2)]).loadStateDict({ tensors, groups })).toThrow(
      /the groups have 2 parameters, but 1 in the state/,
    );
  });

  it('outlives scopes; a step leaves nothing else behind; dispose frees it', async () => {
    const weight = parameter(1);
    const optimizer = new Adam([weight]);
    push(weight, 1);
    const before = memory().tensors;
    tidy(() => optimizer.step());
    expect(memory().tensors).toBe(before + 3);
    optimizer.step();
    await optimizer.stepAsync();
    expect(memory().tensors).toBe(before + 3);
    optimizer.dispose();
    expect(memory().tensors).toBe(before);
  });

  it('zeroGrad drops the gradients', () => {
    const weight = parameter(1);
    push(weight, 1);
    new SGD([weight]).zeroGrad();
    expect(weight.grad).toBeNull();
  });
});

describe('SGD', () => {
  it('goes down the gradient', () => {
    const weight = parameter(1, 2);
    push(weight, 1, -2);
    new SGD([weight], { lr: 0.5 }).step();
    expect(numbers(weight)).toEqual([0.5, 3]);
    expect(numbers(weight.grad as Tensor)).toEqual([1, -2]);
  });

  it('adds momentum and weight decay', () => {
    const weight = parameter(1);
    const optimizer = new SGD([weight], { lr: 0.1, momentum: 0.5, weightDecay: 1 });
    push(weight, 1);
    optimizer.step(); // direction 1 + 1
    expect(numbers(weight)[0]).toBeCloseTo(0.8, 12);
    optimizer.step(); // direction 0.5·2 + (1 + 0.8)
    expect(numbers(weight)[0]).toBeCloseTo(0.52, 12);
  });

  it('minimizes', () => {
    const weight = parameter(5);
    const optimizer = new SGD([weight], { lr: 0.1 });
    for (let step = 0; step < 100; step++) {
      optimizer.zeroGrad();
      tidy(() => weight.sub(3).pow(2).sum().backward());
      optimizer.step();
    }
    expect(numbers(weight)[0]).toBeCloseTo(3, 8);
  });
});
