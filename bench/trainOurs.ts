/**
 * A process of suite `train`: our participant, through the public Trainer.
 *
 * Arguments: job file, dtype.
 */
import { readFile } from 'node:fs/promises';
import {
  makeBatch,
  makeModel,
  manualSeed,
  readSafetensors,
  setNumThreads,
  Trainer,
  type TrainerOptions,
  type TrainingReporter,
} from 'torchformer';
import type { TrainDType } from './options.js';
import type { BatchFile, TrainJob, TrainResult } from './trainJob.js';

const [jobFile, dtype] = process.argv.slice(2) as [string, TrainDType];
const job = JSON.parse(await readFile(jobFile, 'utf8')) as TrainJob;
const { bos, eos, batches } = JSON.parse(await readFile(job.batches, 'utf8')) as BatchFile;

setNumThreads(job.threads);
const { vocabSize, ...widths } = job.model;
const model = makeModel(vocabSize, {
  ...widths,
  dropout: job.dropout,
  ...(job.dropout === 0 ? { attentionDropout: 0 } : {}),
});
await loadWeights();
manualSeed(job.seed);

/** Notes when each step was done. */
class StepClock implements TrainingReporter {
  readonly seconds: number[] = [];
  #last = performance.now();

  start(): void {
    this.#last = performance.now();
  }

  batch(): void {
    const now = performance.now();
    this.seconds.push((now - this.#last) / 1000);
    this.#last = now;
  }

  epoch(): void {}
  message(): void {}
  finish(): void {}
}

const clock = new StepClock();
const trainer = new Trainer(model, options(clock));
const made = batches.slice(0, job.steps).map((pairs) =>
  makeBatch(
    pairs.map(({ src, tgt }, row) => ({ src: [...src], tgt: [...tgt], row: row + 1 })),
    0,
  ),
);
clock.start();
const { history } = await trainer.fit(made, { epochs: 1 });

const result: TrainResult = {
  seconds: clock.seconds,
  tokens: history.steps.map(({ tokens }) => tokens),
  losses: history.steps.map(({ loss }) => loss),
  peakRss: process.resourceUsage().maxRSS * 1024,
};
console.log(JSON.stringify(result));

async function loadWeights(): Promise<void> {
  await using file = await readSafetensors(job.weights);
  const tensors = await file.tensors();
  model.loadStateDict(tensors);
  for (const tensor of tensors.values()) tensor.dispose();
}

function options(reporter: TrainingReporter): TrainerOptions {
  const { learningRate } = job;
  const common = { specialIds: { pad: 0, bos, eos }, learningRate, reporter };
  if (dtype === 'float32') return common;
  const withType = { ...common, dtype };
  return withType;
}
