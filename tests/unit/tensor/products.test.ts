import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  Adam,
  AdamW,
  autocast,
  batchInvariant,
  getNumThreads,
  Linear,
  manualSeed,
  memory,
  noGrad,
  ops,
  ones,
  PositionwiseFeedForward,
  randn,
  setNumThreads,
  SGD,
  tensor,
  tidy,
  type Tensor,
} from 'torchformer';
import { numbers } from '../../support/numbers.js';

beforeEach(() => manualSeed(5));

/** The largest difference; Infinity if there are not as many numbers, or one is NaN. */
function distance(a: readonly number[], b: readonly number[]): number {
  if (a.length !== b.length) return Infinity;
  const differences = a.map((value, index) => Math.abs(value - b[index]!));
  return differences.some(Number.isNaN) ? Infinity : Math.max(0, ...differences);
}

/** The product in float64 by libtorch. */
function exact(a: Tensor, b: Tensor): number[] {
  return numbers(tidy(() => a.to({ dtype: 'float64' }).matmul(b.to({ dtype: 'float64' }))));
}

/** x·Wᵀ as a linear layer computes it. */
function linear(x: Tensor, weight: Tensor): Tensor {
  return ops.torchformer.linear(x, weight);
}

describe('a product of a linear layer', () => {
  it('is the sum over the features', () => {
    const x = tensor([[1, 2, 3]]);
    const weight = tensor([
      [1, 0, 0],
      [10, 100, 1000],
    ]);
    expect(linear(x, weight).toArray()).toEqual([[1, 3210]]);
  });

  it('is that of float64 for all small shapes, forward and backward', () => {
    for (const dtype of ['float32', 'float64'] as const) {
      const tolerance = dtype === 'float32' ? 2e-5 : 1e-13;
      for (let rows = 0; rows <= 40; rows += rows < 16 ? 1 : 5) {
        for (const depth of [0, 1, 2, 7, 16, 33, 40]) {
          tidy(() => {
            const columns = 1 + ((rows * 7 + depth * 3) % 70);
            const x = randn([rows, depth], { dtype }).requiresGrad_();
            const weight = randn([columns, depth], { dtype }).requiresGrad_();
            const upstream = randn([rows, columns], { dtype });
            const output = linear(x, weight);
            const close = (got: Tensor, expected: number[]): void => {
              expect(distance(numbers(got), expected)).toBeLessThanOrEqual(tolerance);
            };
            close(output, exact(x, weight.t()));
            output.backward({ gradient: upstream });
            close(x.grad!, exact(upstream, weight));
            close(weight.grad!, exact(upstream.t(), x));
          });
        }
      }
    }
  });

  it('takes inputs with gaps, reversed strides of a transpose, and one row for all', () => {
    const weight = randn([20, 6]);
    const wide = randn([9, 12]);
    const inputs = [wide.slice(1, 0, 12, 2), randn([6, 9]).t(), ones([1, 6]).expand(9, 6)];
    for (const x of inputs) {
      const expected = exact(x, weight.t());
      expect(distance(numbers(linear(x, weight)), expected)).toBeLessThan(1e-5);
    }
  });

  it('passes NaN and infinity on to the row that they are in, and to no other', () => {
    const x = ones([40, 8]);
    const rows = numbers(x);
    rows[3 * 8 + 2] = NaN;
    rows[5 * 8 + 1] = Infinity;
    const found = linear(tensor(rows).view(40, 8), ones([33, 8])).toArray() as number[][];
    expect(found[3]!.every(Number.isNaN)).toBe(true);
    expect(found[5]!.every((value) => value === Infinity)).toBe(true);
    expect(found[4]!.every((value) => value === 8)).toBe(true);
  });
});

describe('a weight that is kept packed between products of few rows', () => {
  const changes: [string, (layer: Linear, optimizer: (kind: typeof Adam) => Adam) => void][] = [
    ['an in-place op', ({ weight }) => void noGrad(() => weight.mul_(2))],
    ['a write to a view', ({ weight }) => void noGrad(() => weight.select(0, 1).fill_(7))],
    [
      'loading a state dict',
      (layer) => layer.loadStateDict({ weight: ones([5, 4]), bias: ones([5]) }),
    ],
    ['a step of Adam', (_, optimizer) => optimizer(Adam).step()],
    ['a step of AdamW', (_, optimizer) => optimizer(AdamW).step()],
    ['a step of SGD', (layer) => new SGD(layer.parameters(), { lr: 0.5 }).step()],
  ];

  it.each(changes)('is packed again after %s', (_, change) => {
    const layer = new Linear(4, 5);
    const x = randn([3, 4]);
    const run = (): number[] => numbers(tidy(() => noGrad(() => layer.forward(x))));
    const before = run();
    expect(run()).toEqual(before);
    layer.forward(x).sum().backward();
    change(layer, (Kind) => new Kind(layer.parameters(), { lr: 0.5 }));
    const expected = numbers(
      tidy(() =>
        x
          .to({ dtype: 'float64' })
          .matmul(layer.weight.to({ dtype: 'float64' }).t())
          .add(layer.bias!),
      ),
    );
    expect(distance(run(), expected)).toBeLessThan(1e-5);
    expect(distance(run(), before)).toBeGreaterThan(0.01);
  });

  it('is packed again after a write that libtorch does not count', () => {
    const weight = randn([6, 4]);
    const sum = (): unknown =>
      tidy(() =>
        noGrad(() =>
          linear(ones([1, 4]), weight)
            .sum()
            .item(),
        ),
      );
    sum();
    tidy(() => ops.aten.data(weight).fill_(1));
    expect(sum()).toBe(24);
  });

  it('takes no more memory for a hundred views of it than for a few', () => {
    const weight = randn([1000, 256]);
    const x = randn([2, 256]);
    const before = memory().nativeBytes;
    for (let first = 0; first < 100; first++) {
      tidy(() => noGrad(() => linear(x, weight.slice(0, first, first + 900))));
    }
    // A view's form takes one megabyte; other native memory varies by less than that.
    expect(memory().nativeBytes - before).toBeLessThan(4e6);
  });

  it('is no tensor of the user, and leaves with the weight', () => {
    const x = randn([3, 64]);
    const before = memory().tensors;
    for (let i = 0; i < 20; i++) {
      tidy(() => {
        const layer = new Linear(64, 64);
        noGrad(() => layer.forward(x));
        for (const parameter of layer.parameters()) parameter.dispose();
      });
    }
    expect(memory().tensors).toBe(before);
  });
});

describe('a backward pass', () => {
  it('refuses a weight that a step of Adam has changed since the forward pass', () => {
    const layer = new Linear(4, 5);
    const optimizer = new Adam(layer.parameters(), { lr: 0.1 });
    const x = randn([3, 4]).requiresGrad_();
    layer.forward(x).sum().backward();
    const late = layer.forward(x).sum();
    optimizer.step();
    expect(() => late.backward()).toThrow(/modified by an inplace operation/);
  });
});

describe('batchInvariant', () => {
  const threads = getNumThreads();
  afterEach(() => setNumThreads(threads));

  const layers = {
    linear: new Linear(70, 130),
    'feed-forward': new PositionwiseFeedForward(70, 130),
  };

  for (const [name, layer] of Object.entries(layers)) {
    it(`gives a row of a ${name} layer the same bits alone, in any order and on any number of threads`, () => {
      layer.eval();
      const x = randn([90, 70]);
      const run = (rows: Tensor): number[][] =>
        tidy(() => batchInvariant(() => noGrad(() => layer.forward(rows))).toArray()) as number[][];
      const together = run(x);
      for (const row of [0, 1, 44, 89])
        expect(run(x.slice(0, row, row + 1))).toEqual([together[row]]);
      expect(run(x.slice(0, 10, 33))).toEqual(together.slice(10, 33));
      expect(run(x.flip([0]))).toEqual([...together].reverse());
      for (const count of [1, 2, 5]) {
        setNumThreads(count);
        expect(run(x)).toEqual(together);
      }
      const recorded = batchInvariant(() => layer.forward(x)).toArray();
      expect(recorded).toEqual(together);
    });
  }

  it('ends with its function, also after an error', () => {
    expect(() =>
      batchInvariant(() => {
        throw new Error('mine');
      }),
    ).toThrow('mine');
    expect(batchInvariant(() => 3)).toBe(3);
  });

  it('refuses what it cannot hold for', () => {
    expect(() => batchInvariant(async () => 1)).toThrow(/must be synchronous/);
    // A rejection of the refused promise does not end the process.
    expect(() => batchInvariant(() => Promise.reject(new Error('mine')))).toThrow(/synchronous/);
    expect(() => autocast('bfloat16', () => Promise.reject(new Error('mine')))).toThrow(
      /synchronous/,
    );
    expect(() => batchInvariant(3 as never)).toThrow(TypeError);
  });
});
