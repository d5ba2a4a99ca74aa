/** Chooses how steps are taken: at once, queued on a GPU, or recorded there. */
import { Adam } from '../../optim/adam.js';
import { canRecordGraphs, recordGraph } from '../../tensor/cudaGraph.js';
import { CapturedSteps } from './capturedSteps.js';
import { QueuedSteps } from './queuedSteps.js';
import { ImmediateSteps, type Steps, type StepSettings } from './steps.js';

/** How steps are taken. */
export interface StepChoice {
  /** Whether to record them as CUDA graphs. */
  readonly graphs: boolean;
  /** Whether no step may be taken after one with a fault. */
  readonly stopsAtFault: boolean;
}

/**
 * With Adam, steps on a GPU can be queued without waiting, and the loss can be scaled.
 *
 * @param say told why `graphs` has no effect
 */
export function makeSteps(
  settings: StepSettings,
  { graphs, stopsAtFault }: StepChoice,
  say: (message: string) => void,
): Steps {
  const { optimizer, parameters, dtype } = settings;
  const isOnGpu = parameters.some(({ device }) => device !== 'cpu');
  if (!(optimizer instanceof Adam) || !(isOnGpu || dtype === 'float16')) {
    return new ImmediateSteps(settings);
  }
  if (isOnGpu && graphs) {
    if (canRecordGraphs()) {
      return new CapturedSteps({ ...settings, optimizer }, stopsAtFault, recordGraph);
    }
    say('graphs: the CUDA kernels that record them are not available (`npx torchformer doctor`)');
  }
  return new QueuedSteps({ ...settings, optimizer }, stopsAtFault);
}
