/** `autocast` with results in bfloat16: what GPUs do by default, here asked for on the CPU. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  autocast,
  LayerNorm,
  Linear,
  makeBatch,
  makeModel,
  manualSeed,
  PositionwiseFeedForward,
  randn,
  RMSNorm,
  SublayerConnection,
  tokenLossSum,
  type Tensor,
} from 'torchformer';
import { largestDifference } from '../../support/numbers.js';

beforeEach(() => manualSeed(1));

function inBfloat16<T>(compute: () => T): T {
  return autocast('bfloat16', compute, { results: 'bfloat16' });
}

/** Half of the last place of bfloat16, a few times over. */
const tolerance = 2 ** -6;

function relative(a: Tensor, b: Tensor): number {
  const wide = (x: Tensor) => x.detach().to({ dtype: 'float64' });
  return largestDifference(wide(a), wide(b)) / wide(b).abs().max().item();
}

describe('with results in bfloat16', () => {
  const layers: [string, () => { forward: (x: Tensor) => Tensor; parameters: () => Tensor[] }][] = [
    ['Linear', () => new Linear(16, 24)],
    ['LayerNorm', () => new LayerNorm(16)],
    ['LayerNorm by the sample', () => new LayerNorm(16, { std: 'sample' })],
    ['RMSNorm', () => new RMSNorm(16)],
    ['feed-forward', () => new PositionwiseFeedForward(16, 32, { dropout: 0 })],
    ['gated', () => new PositionwiseFeedForward(16, 32, { dropout: 0, activation: 'swiglu' })],
  ];

  it.each(layers)('%s gives bfloat16 and float32 gradients of its weights', (_name, make) => {
    const layer = make();
    const x = randn([5, 16]).requiresGrad_();
    const upstream = randn([5, layer.forward(x).shape.at(-1) as number]);
    layer.forward(x).backward({ gradient: upstream });
    const exact = [x, ...layer.parameters()].map((one) => one.grad!.detach().clone());
    const expected = layer.forward(x);
    for (const one of [x, ...layer.parameters()]) one.grad = null;

    const output = inBfloat16(() => layer.forward(x));
    expect(output.dtype).toBe('bfloat16');
    expect(relative(output, expected)).toBeLessThan(tolerance);
    output.backward({ gradient: upstream.to({ dtype: 'bfloat16' }) });
    [x, ...layer.parameters()].forEach((one, index) => {
      expect(one.grad!.dtype).toBe('float32');
      expect(relative(one.grad!, exact[index]!)).toBeLessThan(2 * tolerance);
    });
  });

  it('a layer takes what the one before it gives', () => {
    const [norm, linear] = [new LayerNorm(16), new Linear(16, 8)];
    const x = randn([3, 16]);
    const output = inBfloat16(() => linear.forward(norm.forward(x)));
    expect(output.dtype).toBe('bfloat16');
    // Outside, as before, dtypes have to fit.
    expect(() => linear.forward(x.to({ dtype: 'bfloat16' }))).toThrow(/input is bfloat16/);
  });

  it.each(['pre', 'post'] as const)('the residual stream stays float32 (%s)', (order) => {
    const connection = new SublayerConnection(16, { dropout: 0.2, order });
    const linear = new Linear(16, 16);
    const x = randn([3, 16]);
    const sum = inBfloat16(() => connection.forward(x, linear));
    expect(sum.dtype).toBe(order === 'pre' ? 'float32' : 'bfloat16');
  });

  it('a whole model has the loss and gradients of float32, within the format', () => {
    // Smooth: a ReLU that rounding closes or opens changes gradients by more than the format does.
    const model = makeModel(20, {
      N: 2,
      dModel: 32,
      dFf: 64,
      h: 4,
      dropout: 0,
      attentionDropout: 0,
      activation: 'gelu',
    });
    const pairs = [
      { src: [2, 5, 6, 3], tgt: [2, 7, 8, 9, 3], row: 1 },
      { src: [2, 5, 3], tgt: [2, 7, 3], row: 2 },
    ];
    const batch = makeBatch(pairs, 0);
    const run = () => {
      model.zeroGrad();
      const loss = tokenLossSum(model, batch, 0);
      expect(loss.dtype).toBe('float32');
      loss.backward();
      return [loss.item(), model.parameters().map((one) => one.grad!.detach().clone())] as const;
    };
    const [exactLoss, exact] = run();
    const [loss, gradients] = inBfloat16(run);
    expect(Math.abs(loss - exactLoss) / exactLoss).toBeLessThan(tolerance);
    const largest = Math.max(...exact.map((one) => one.abs().max().item()));
    gradients.forEach((one, index) => {
      expect(largestDifference(one, exact[index]!) / largest).toBeLessThan(4 * tolerance);
    });
  });

  it('a layer whose weights are no float32 keeps its own format', () => {
    for (const dtype of ['float16', 'float64'] as const) {
      const linear = new Linear(4, 3).to({ dtype });
      const x = randn([2, 4]).to({ dtype });
      expect(inBfloat16(() => linear.forward(x)).dtype).toBe(dtype);
      expect(inBfloat16(() => new LayerNorm(4).to({ dtype }).forward(x)).dtype).toBe(dtype);
    }
  });

  it('refuses other formats', () => {
    const odd = { results: 'float16' } as never;
    expect(() => autocast('bfloat16', () => 0, odd)).toThrow(
      "autocast: results must be 'float32' or 'bfloat16' with 'bfloat16', got the string \"float16\"",
    );
    expect(() => autocast('bfloat16', () => 0, { result: 1 } as never)).toThrow(/result/);
  });
});
