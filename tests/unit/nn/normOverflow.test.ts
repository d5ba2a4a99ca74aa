import { beforeEach, describe, expect, it } from 'vitest';
import {
  batches,
  LayerNorm,
  makeModel,
  manualSeed,
  noGrad,
  RMSNorm,
  SublayerConnection,
  tensor,
  Trainer,
  TranslationDataset,
  type Tensor,
} from 'torchformer';
import { numbers } from '../../support/numbers.js';

beforeEach(() => manualSeed(1));

/** Squares of which float32 cannot hold the sum, though it holds the numbers. */
const large = (width: number): Tensor =>
  tensor([[Array.from({ length: width }, (_, column) => (1 + (column % 4)) * 1e19)]]);

describe.each([4, 64])('a row of %i numbers whose squares overflow', (width) => {
  const norms: [string, LayerNorm | RMSNorm][] = [
    ['population, eps inside', new LayerNorm(width)],
    ['sample, eps outside', new LayerNorm(width, { std: 'sample', epsPlace: 'outside' })],
    ['root mean square', new RMSNorm(width)],
  ];

  it.each(norms)('is NaN after a norm, not zeros: %s', (_, norm) => {
    expect(numbers(norm.forward(large(width)))).toEqual(Array(width).fill(NaN));
    expect(numbers(noGrad(() => norm.forward(large(width))))).toEqual(Array(width).fill(NaN));
  });

  it.each(['pre', 'post'] as const)('is NaN behind a residual sum too: %s-norm', (order) => {
    const connection = new SublayerConnection(width, { dropout: 0, order });
    const output = connection.forward(large(width), (x) => x.mul(0));
    expect(numbers(output)).toEqual(Array(width).fill(NaN));
  });
});

it('training stops at it', async () => {
  const specialIds = { pad: 0, bos: 1, eos: 2 };
  const pairs = [{ src: [1, 3, 2], tgt: [1, 4, 2], row: 0 }];
  const dataset = new TranslationDataset(pairs, { specialIds, vocabSize: 6 });
  const model = makeModel(6, { N: 1, dModel: 64, dFf: 8, h: 2 });
  const weight = model.srcEmbed.getParameter('0.embedding.weight');
  noGrad(() => weight.copy_(large(64).reshape([64]).expand([6, 64])));
  const trainer = new Trainer(model, { specialIds, reporter: null });
  await expect(
    trainer.fit(() => batches(dataset, { batchSize: 1 }), { epochs: 1 }),
  ).rejects.toMatchObject({ code: 'ERR_NON_FINITE' });
});
