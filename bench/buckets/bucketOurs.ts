/**
 * A process of suite `train`: our participant on length-bucketed batches.
 *
 * Arguments: job file, dtype.
 */
import { readFile } from 'node:fs/promises';
import { evaluate } from 'torchformer';
import type { TrainDType } from '../options.js';
import { StepClock } from '../stepClock.js';
import { batchOf, makeTrainer } from '../trainSetup.js';
import type { BucketEpoch, BucketFile, BucketJob, BucketResult } from './bucketJob.js';
import { cutBuckets } from './cutBuckets.js';

const [jobFile, dtype] = process.argv.slice(2) as [string, TrainDType];
const job = JSON.parse(await readFile(jobFile, 'utf8')) as BucketJob;
const file = JSON.parse(await readFile(job.pairs, 'utf8')) as BucketFile;
const clock = new StepClock();
const { bos, eos } = file;
const { model, trainer } = await makeTrainer(job, { bos, eos, dtype, reporter: clock });
const training = cutBuckets(file.training, job.tokens).map(batchOf);
const validation = job.validate ? cutBuckets(file.validation, job.tokens).map(batchOf) : [];

const seconds: number[] = [];
const epochs: BucketEpoch[] = [];
for (const order of file.orders.slice(0, job.epochs)) {
  const batches = order.slice(0, job.steps ?? order.length).map((index) => training[index]!);
  const before = trainer.history.steps.length;
  clock.start();
  await trainer.fit(batches, { epochs: 1 });
  seconds.push(...clock.seconds);
  const steps = trainer.history.steps.slice(before);
  const tokens = steps.reduce((sum, step) => sum + step.tokens, 0);
  const held = job.validate ? await evaluate(model, validation, { pad: 0 }) : null;
  epochs.push({
    seconds: clock.seconds.reduce((sum, value) => sum + value, 0),
    trainingLoss: steps.reduce((sum, step) => sum + step.loss * step.tokens, 0) / tokens,
    validationLoss: held === null ? null : held.loss,
    validationTokens: held === null ? null : held.tokens,
  });
}
const { steps } = trainer.history;
const result: BucketResult = {
  seconds,
  tokens: steps.map(({ tokens }) => tokens),
  losses: steps.map(({ loss }) => loss),
  epochs,
  peakRss: process.resourceUsage().maxRSS * 1024,
};
console.log(JSON.stringify(result));
