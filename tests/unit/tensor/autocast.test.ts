import { beforeEach, describe, expect, it } from 'vitest';
import {
  Adam,
  autocast,
  Linear,
  makeBatch,
  makeModel,
  manualSeed,
  noGrad,
  PositionwiseFeedForward,
  randn,
  tensor,
  tokenLossSum,
  Trainer,
  type Tensor,
} from 'torchformer';
import { largestDifference } from '../../support/numbers.js';

beforeEach(() => manualSeed(1));

/** float32 numbers that bfloat16 holds. */
function rounded(x: Tensor): Tensor {
  return x.detach().to({ dtype: 'bfloat16' }).to({ dtype: 'float32' });
}

describe('autocast', () => {
  it('rounds the factors of a product to 8 bits, not its sum', () => {
    const linear = new Linear(2, 1, { bias: false });
    noGrad(() => linear.weight.copy_(tensor([[1, 1]])));
    // 1 + 2^-9 rounds to 1; 256 + 1 would round to 256 as a bfloat16 sum.
    expect(autocast('bfloat16', () => linear.forward(tensor([[1 + 2 ** -9, 0]]))).item()).toBe(1);
    expect(autocast('bfloat16', () => linear.forward(tensor([[256, 1]]))).item()).toBeCloseTo(
      257,
      -1,
    );
    expect(linear.forward(tensor([[1 + 2 ** -9, 0]])).item()).toBe(1 + 2 ** -9);
  });

  it('is that of the rounded factors, forward and backward', () => {
    const linear = new Linear(33, 17);
    const x = randn([5, 33]).requiresGrad_();
    const upstream = randn([5, 17]);
    const output = autocast('bfloat16', () => linear.forward(x));
    output.backward({ gradient: upstream });
    const weight = rounded(linear.weight);
    const expected = rounded(x)
      .matmul(weight.t())
      .add(linear.bias?.detach() as Tensor);
    // 2^-7: processors with instructions for it round the result of a product as well.
    expect(largestDifference(output, expected) / expected.abs().max().item()).toBeLessThan(2 ** -7);
    const dx = rounded(upstream).matmul(weight);
    expect(largestDifference(x.grad as Tensor, dx) / dx.abs().max().item()).toBeLessThan(2 ** -7);
    const dw = rounded(upstream).t().matmul(rounded(x));
    expect(
      largestDifference(linear.weight.grad as Tensor, dw) / dw.abs().max().item(),
    ).toBeLessThan(2 ** -7);
    expect(linear.weight.grad?.dtype).toBe('float32');
    expect(output.dtype).toBe('float32');
  });

  it('changes nothing for other formats, and ends with its function', () => {
    const linear = new Linear(3, 2).to({ dtype: 'float64' });
    const x = randn([2, 3]).to({ dtype: 'float64' });
    const plain = linear.forward(x);
    expect(
      largestDifference(
        autocast('bfloat16', () => linear.forward(x)),
        plain,
      ),
    ).toBe(0);
    const single = new Linear(3, 2);
    const y = randn([2, 3]);
    const before = single.forward(y);
    expect(() =>
      autocast('bfloat16', () => {
        throw new Error('mine');
      }),
    ).toThrow('mine');
    expect(largestDifference(single.forward(y), before)).toBe(0);
    const inside = autocast('bfloat16', () => autocast('float32', () => single.forward(y)));
    expect(largestDifference(inside, before)).toBe(0);
  });

  it('reaches feed-forward layers of every activation', () => {
    for (const activation of ['relu', 'gelu', 'swiglu'] as const) {
      const layer = new PositionwiseFeedForward(16, 40, { dropout: 0, activation });
      const x = randn([6, 16]).requiresGrad_();
      const run = (dtype: 'float32' | 'bfloat16') => {
        x.grad = null;
        const y = autocast(dtype, () => layer.forward(x));
        y.sum().backward();
        return [y.detach(), (x.grad as unknown as Tensor).clone()] as const;
      };
      const [exact, exactGrad] = run('float32');
      const [short, shortGrad] = run('bfloat16');
      for (const [a, b] of [
        [exact, short],
        [exactGrad, shortGrad],
      ] as const) {
        const difference = largestDifference(a, b) / a.abs().max().item();
        expect(difference).toBeGreaterThan(0);
        expect(difference).toBeLessThan(2 ** -5);
      }
    }
  });

  it.each<[string, () => unknown, RegExp]>([
    ['another format', () => autocast('float64' as never, () => 1), /dtype must be/],
    ['what is no function', () => autocast('bfloat16', 1 as never), /compute/],
    ['a promise', () => autocast('bfloat16', async () => Promise.resolve(1)), /synchronous/],
  ])('refuses %s', (_name, run, message) => {
    expect(run).toThrow(message);
  });
});

describe('Trainer with dtype bfloat16', () => {
  const pairs = Array.from({ length: 8 }, (_, i) => ({
    src: [1, 3 + i, 4 + i, 2],
    tgt: [1, 5 + i, 3 + i, 2],
    row: i + 1,
  }));

  it('learns as in float32, to 1 % in the first ten losses, and keeps float32 weights', async () => {
    const model = makeModel(20, {
      N: 2,
      dModel: 32,
      dFf: 64,
      h: 4,
      dropout: 0,
      attentionDropout: 0,
    });
    const other = model.clone();
    const losses = async (m: typeof model, dtype: 'float32' | 'bfloat16') => {
      const trainer = new Trainer(m, {
        specialIds: { pad: 0, bos: 1, eos: 2 },
        reporter: null,
        learningRate: 1e-3,
        dtype,
      });
      await trainer.fit(() => [makeBatch(pairs, 0)], { epochs: 10 });
      return trainer.history.steps.map(({ loss }) => loss);
    };
    const short = await losses(model, 'bfloat16');
    const exact = await losses(other, 'float32');
    expect(short).not.toEqual(exact);
    short.forEach((loss, index) => {
      expect(Math.abs(loss / (exact[index] as number) - 1)).toBeLessThan(0.01);
    });
    expect(model.parameters().every(({ dtype }) => dtype === 'float32')).toBe(true);
  });

  it('gives gradients near the exact ones through a whole model', () => {
    const model = makeModel(20, {
      N: 1,
      dModel: 16,
      dFf: 32,
      h: 2,
      dropout: 0,
      attentionDropout: 0,
    });
    const batch = makeBatch(pairs, 0);
    const gradients = (dtype: 'float32' | 'bfloat16') => {
      model.zeroGrad();
      autocast(dtype, () => tokenLossSum(model, batch, 0, { scale: 1 / batch.ntokens })).backward();
      return model.parameters().map((p) => (p.grad as Tensor).clone());
    };
    const exact = gradients('float32');
    const largest = Math.max(...exact.map((g) => g.abs().max().item()));
    gradients('bfloat16').forEach((gradient, index) => {
      expect(largestDifference(gradient, exact[index] as Tensor) / largest).toBeLessThan(2 ** -5);
    });
  });

  it('refuses other formats', () => {
    const model = makeModel(20, { N: 1, dModel: 8, dFf: 8, h: 2 });
    const make = () =>
      new Trainer(model, { specialIds: { pad: 0, bos: 1, eos: 2 }, dtype: 'int8' as never });
    expect(make).toThrow(/dtype must be 'float32', 'bfloat16' or 'float16'/);
    expect(() => new Adam(model.parameters())).not.toThrow();
  });
});
