/**
 * Our participant, which takes steps on request; the counterpart of participant.py.
 *
 * Arguments: job file, dtype.
 */
import { createInterface } from 'node:readline';
import type { TrainDType } from '../options.js';
import { StepClock } from '../stepClock.js';
import { setUp } from '../trainSetup.js';
import { peakDeviceMemory, synchronizeDevice } from './device.js';
import type { StepsRequest, StepsResult } from './participant.js';

const [jobFile, dtype] = process.argv.slice(2) as [string, TrainDType];
// A step is reported once its loss has been read, so it is complete; waiting for more would delay the
// next step on the device.
const clock = new StepClock();
const { trainer, batches } = await setUp(jobFile, dtype, clock);
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { first, count } = JSON.parse(line) as StepsRequest;
  const before = trainer.history.steps.length;
  synchronizeDevice();
  clock.start();
  const { history } = await trainer.fit(batches.slice(first, first + count), { epochs: 1 });
  const steps = history.steps.slice(before);
  const peakDevice = peakDeviceMemory();
  const result: StepsResult = {
    seconds: clock.seconds,
    tokens: steps.map(({ tokens }) => tokens),
    losses: steps.map(({ loss }) => loss),
    peakRss: process.resourceUsage().maxRSS * 1024,
    ...(peakDevice === null ? {} : { peakDevice }),
  };
  console.log(JSON.stringify(result));
}
