/**
 * A process of suite `memory`: training steps of one optimizer with random ids.
 *
 * Arguments: size, optimizer, threads, steps.
 */
import {
  Adafactor,
  Adam,
  clipGradNorm,
  Embedding,
  makeBatch,
  makeModel,
  manualSeed,
  memory,
  setNumThreads,
  tidy,
  tokenLossSum,
} from 'torchformer';
import { trainSizes, type SizeName } from '../sizes.js';

/** What the steps took. */
export interface MemoryResult {
  readonly parameters: number;
  /** Bytes of weights and of the optimizer's state, which live from step to step. */
  readonly lasting: number;
  /** The largest resident memory of the process, in bytes. */
  readonly peakRss: number;
  /** Seconds of the last step, for the backward pass and the update apart. */
  readonly seconds: number;
  readonly updateSeconds: number;
  readonly losses: readonly number[];
}

const optimizers = { Adam, Adafactor };
export type OptimizerName = keyof typeof optimizers;

const [size, name, threads, steps] = process.argv.slice(2) as [
  SizeName,
  OptimizerName,
  string,
  string,
];
setNumThreads(Number(threads));
manualSeed(1);
const { model: sizes, batchSize } = trainSizes[size];
const { vocabSize, ...widths } = sizes;
const model = makeModel(vocabSize, widths);
for (const module of model.modules()) {
  // As Trainer does: a batch uses few rows.
  if (module instanceof Embedding) module.sparseGradient = true;
}
// As many tokens as in the batches of size `seed` of suite `train`: 8 and 9 a pair on average.
const sentence = (row: number, length: number) =>
  Array.from({ length }, (_, place) => 3 + ((row * 7919 + place * 104_729) % (vocabSize - 3)));
const pairs = Array.from({ length: batchSize }, (_, row) => ({
  src: sentence(row, 4 + (row % 9)),
  tgt: [1, ...sentence(row + batchSize, 3 + (row % 11)), 2],
  row: row + 1,
}));
const batch = makeBatch(pairs, 0);
const rates = { Adam: 1e-4, Adafactor: 1e-2 };
const optimizer = new optimizers[name](model.parameters(), { lr: rates[name] });
const losses: number[] = [];
let [seconds, updateSeconds] = [0, 0];
for (let step = 0; step < Number(steps); step++) {
  const start = performance.now();
  optimizer.zeroGrad();
  tidy(() => {
    const loss = tokenLossSum(model, batch, 0, { scale: 1 / batch.ntokens });
    losses.push(loss.item());
    loss.backward();
  });
  clipGradNorm(model.parameters(), 1);
  const half = performance.now();
  optimizer.step();
  seconds = (performance.now() - start) / 1000;
  updateSeconds = (performance.now() - half) / 1000;
}
optimizer.zeroGrad();
const result: MemoryResult = {
  parameters: model.parameters().reduce((sum, { numel }) => sum + numel, 0),
  lasting: memory().bytes,
  peakRss: process.resourceUsage().maxRSS * 1024,
  seconds,
  updateSeconds,
  losses,
};
console.log(JSON.stringify(result));
