// Trains until it ends itself: by process.exit or an uncaught error, with or without listeners.
import { batches, makeModel, ones, Trainer, TranslationDataset } from 'torchformer';
const [way, listeners] = process.argv.slice(2);
const specialIds = { pad: 0, bos: 1, eos: 2 };
const pairs = Array.from({ length: 64 }, (_, row) => ({
  src: [1, 3 + (row % 17), 4, 2],
  tgt: [1, 3 + (row % 17), 2],
  row,
}));
const dataset = new TranslationDataset(pairs, { specialIds, vocabSize: 20 });
const model = makeModel(20, { N: 2, dModel: 64, dFf: 128, h: 4 });
const trainer = new Trainer(model, { specialIds, reporter: null });
ones([1]);
if (listeners === 'none') process.removeAllListeners('exit');
const end = () => {
  if (way === 'throw') throw new Error('boom');
  process.exit(5);
};
setTimeout(end, 150);
await trainer.fit(() => batches(dataset, { batchSize: 8 }), { epochs: 100_000 });
