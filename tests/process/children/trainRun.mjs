// A small run in the folder of the first argument that uses all that a resume must restore. It tells its
// step on standard output. With a second argument, n, it kills itself at the n-th operation on files.
import {
  batches,
  makeModel,
  manualSeed,
  noam,
  ones,
  Trainer,
  TranslationDataset,
} from 'torchformer';
import { signalAtOperation } from './signalAtOperation.mjs';

const [out, operation] = process.argv.slice(2);
const specialIds = { pad: 0, bos: 1, eos: 2 };
const pairs = Array.from({ length: 60 }, (_, row) => ({
  src: [1, 3 + (row % 17), 4 + (row % 5), 2],
  tgt: [1, 3 + (row % 17), ...(row % 3 === 0 ? [5] : []), 2],
  row,
}));
const dataset = new TranslationDataset(pairs, { specialIds, vocabSize: 20 });
ones([1]).dispose();
manualSeed(7);
const model = makeModel(20, { N: 1, dModel: 16, dFf: 32, h: 2, dropout: 0.3, maxLen: 16 });
const trainer = new Trainer(model, {
  specialIds,
  out,
  resume: true,
  schedule: noam({ dModel: 16, warmup: 30 }),
  averaging: { decay: 0.9 },
  saveEvery: 5,
  keepLast: 2,
  keepBest: 2,
  reporter: null,
});
trainer.on('step', ({ step }) => process.stdout.write(`${step}\n`));
trainer.on('validation', ({ step }) => process.stdout.write(`validated ${step}\n`));
if (operation !== undefined) signalAtOperation(Number(operation), 'SIGKILL');
// 9 steps an epoch: saves come at ends of epochs, at validations, and between them.
await trainer.fit((epoch) => batches(dataset, { batchSize: 7, shuffle: true, seed: 3, epoch }), {
  steps: 90,
  validation: () => batches(dataset, { batchSize: 30 }),
  validateEvery: 7,
});
trainer.dispose();
model.dispose();
