/**
 * Suite `learning`: the effect of bfloat16 products on quality. The same weights are trained on the same
 * batches in both formats, and compared on held-out data.
 */
import { evaluate, makeBatch, makeModel, manualSeed, Trainer, type Batch } from 'torchformer';
import { makeBatches } from './corpora.js';
import type { BenchOptions, TrainDType } from './options.js';
import { print, say } from './report.js';
import { describeModel, trainSizes } from './sizes.js';

/** Training steps, and held-out batches. */
const steps = 300;
const heldBack = 20;
const specialIds = { pad: 0, bos: 1, eos: 2 };

/** Losses of the held-out batches, by format. @returns the results for `--json` */
export async function benchLearning(options: BenchOptions): Promise<unknown> {
  const size = trainSizes.small;
  const { bos, eos, batches } = await makeBatches(size, options.data, steps + heldBack);
  const made = batches.map((pairs) =>
    makeBatch(
      pairs.map((pair, index) => ({ ...pair, row: index + 1 })),
      specialIds.pad,
    ),
  );
  const [training, validation] = [made.slice(0, steps), made.slice(steps)];
  const ids = { ...specialIds, bos, eos };
  const losses: Partial<Record<TrainDType, number>> = {};
  for (const dtype of ['float32', 'bfloat16'] as const) {
    say(`learning: ${steps} steps in ${dtype}`);
    losses[dtype] = await learn(dtype, ids, training, validation);
  }
  const { float32 = NaN, bfloat16 = NaN } = losses;
  print('\n## learning\n');
  print(
    `${describeModel(size.model)}, batch ${size.batchSize}, ${size.corpus}; ${steps} steps, Adam at ` +
      `5e-4, dropout 0.1; loss on ${heldBack} held-out batches\n`,
  );
  print(`float32 products: ${float32.toFixed(4)}`);
  print(`bfloat16 products: ${bfloat16.toFixed(4)}`);
  print(`difference: ${((100 * (bfloat16 - float32)) / float32).toFixed(2)} %`);
  return { losses };
}

async function learn(
  dtype: TrainDType,
  ids: typeof specialIds,
  training: readonly Batch[],
  validation: readonly Batch[],
): Promise<number> {
  const { vocabSize, ...widths } = trainSizes.small.model;
  manualSeed(1);
  const model = makeModel(vocabSize, widths);
  const trainer = new Trainer(model, {
    specialIds: ids,
    dtype,
    learningRate: 5e-4,
    reporter: null,
  });
  await trainer.fit(training, { epochs: 1 });
  const { loss } = await evaluate(model, validation, { pad: ids.pad });
  trainer.dispose();
  model.dispose();
  return loss;
}
