/**
 * A process of suite `train`: our participant.
 *
 * Arguments: job file, dtype.
 */
import type { TrainingReporter } from 'torchformer';
import type { TrainDType } from './options.js';
import type { TrainResult } from './trainJob.js';
import { setUp } from './trainSetup.js';

/** Notes how long each step took. */
class StepClock implements TrainingReporter {
  readonly seconds: number[] = [];
  #last = NaN;

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
