/**
 * Compares a small model on a device and on the CPU: ten losses of training, and greedy translations.
 * Prints one line of JSON.
 *
 * Arguments: file of batches, device.
 */
import { readFile } from 'node:fs/promises';
import {
  greedy,
  makeBatch,
  makeModel,
  manualSeed,
  Trainer,
  type Batch,
  type Device,
  type Transformer,
} from 'torchformer';
import { comparedLosses } from '../sizes.js';
import { largestRelativeDifference } from '../statistics.js';
import type { BatchFile } from '../trainJob.js';
import { gpuSizes } from './gpuSizes.js';

/** Relative tolerance between losses on the device and on the CPU. */
const tolerances = { float32: 1e-5, bfloat16: 1e-3 } as const;

const [file, device] = process.argv.slice(2) as [string, Device];
const { bos, eos, batches } = JSON.parse(await readFile(file, 'utf8')) as BatchFile;
const specialIds = { pad: 0, bos, eos };

function freshBatches(): Batch[] {
  return batches.map((pairs) =>
    makeBatch(
      pairs.map(({ src, tgt }, row) => ({ src: [...src], tgt: [...tgt], row: row + 1 })),
      0,
    ),
  );
}

function freshModel(): Transformer {
  const { vocabSize, ...widths } = gpuSizes.tiny.model;
  manualSeed(1);
  return makeModel(vocabSize, { ...widths, dropout: 0, attentionDropout: 0 });
}

async function losses(where: Device, dtype: keyof typeof tolerances): Promise<number[]> {
  const model = freshModel().to(where);
  const trainer = new Trainer(model, {
    specialIds,
    learningRate: 5e-4,
    reporter: null,
    // float32 is the model's own dtype.
    ...(dtype === 'float32' ? {} : { dtype }),
  });
  const { history } = await trainer.fit(freshBatches().slice(0, comparedLosses), { epochs: 1 });
  return history.steps.map(({ loss }) => loss);
}

/** Translations of the first batch by the model, on the model's device. */
async function translations(model: Transformer, where: Device): Promise<number[][]> {
  const [batch] = freshBatches();
  const { src, srcMask } = batch!;
  const options = { ...specialIds, maxLength: 40 };
  const decoded = await greedy(
    model.eval(),
    src.to({ device: where }),
    srcMask.to({ device: where }),
    options,
  );
  return decoded.map(({ ids }) => ids);
}

const faults: string[] = [];
const differences: Record<string, number> = {};
for (const dtype of ['float32', 'bfloat16'] as const) {
  const difference = largestRelativeDifference(
    await losses(device, dtype),
    await losses('cpu', dtype),
  );
  differences[dtype] = difference;
  // Also true for NaN.
  if (!(difference <= tolerances[dtype])) {
    faults.push(
      `${dtype} losses differ by ${difference.toExponential(1)}, not ${tolerances[dtype]}`,
    );
  }
}

// Trained for some steps, so that the choice is not between equally probable words.
const model = freshModel();
const trainer = new Trainer(model, { specialIds, learningRate: 3e-3, reporter: null });
await trainer.fit(freshBatches, { epochs: 8 });
const onCpu = await translations(model, 'cpu');
const onDevice = await translations(model.to(device), device);
const differ = onCpu.filter((ids, row) => ids.join() !== onDevice[row]?.join()).length;
if (differ > 0) faults.push(`${differ} of ${onCpu.length} translations differ`);
const tokens = onCpu.reduce((sum, { length }) => sum + length, 0);
if (tokens === 0) faults.push('the translations are empty, so they tell nothing');
console.log(JSON.stringify({ differences, translations: onCpu.length, tokens, differ, faults }));
