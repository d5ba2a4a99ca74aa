/**
 * A process of suite `train`: our participant.
 *
 * Arguments: job file, dtype.
 */
import type { TrainDType } from './options.js';
import { StepClock } from './stepClock.js';
import type { TrainResult } from './trainJob.js';
import { setUp } from './trainSetup.js';

const [jobFile, dtype] = process.argv.slice(2) as [string, TrainDType];
const clock = new StepClock();
const { trainer, batches } = await setUp(jobFile, dtype, clock);
clock.start();
const { history } = await trainer.fit(batches, { epochs: 1 });
const result: TrainResult = {
  seconds: clock.seconds,
  tokens: history.steps.map(({ tokens }) => tokens),
  losses: history.steps.map(({ loss }) => loss),
  peakRss: process.resourceUsage().maxRSS * 1024,
};
console.log(JSON.stringify(result));
