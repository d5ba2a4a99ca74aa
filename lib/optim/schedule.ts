import { checkInteger, checkNonNegative, checkRequiredOptions } from '../runtime/arguments.js';

/**
 * The learning rate of a step; the first step is 1. It depends only on the step, so a resumed
 * training continues exactly as if it had not been interrupted: `optimizer.lr = schedule(step)`.
 */
export type Schedule = (step: number) => number;

/** Settings of {@link noam}. */
export interface NoamOptions {
  /** size of the model's vectors */
  dModel: number;
  /** steps of linear growth, after which the rate decays as 1/√step; default 4000 (the paper's) */
  warmup?: number;
  /** factor of the whole formula; default 1 */
  factor?: number;
}

/**
 * factor · dModel^-½ · min(step^-½, step · warmup^-1.5) (paper, section 5.3). This is the rate
 * itself, not a multiplier of another rate. Step 0 is treated as step 1.
 *
 * @throws RangeError, TypeError for settings out of range, including `warmup` 0
 */
export function noam(options: NoamOptions): Schedule {
  checkRequiredOptions('noam', options, ['dModel', 'warmup', 'factor'], 'dModel');
  const { dModel, warmup = 4000, factor = 1 } = options;
  checkInteger('noam', 'dModel', dModel, 1);
  checkInteger('noam', 'warmup', warmup, 1);
  checkNonNegative('noam', 'factor', factor);
  return (step) => {
    const count = Math.max(checkInteger('noam', 'step', step, 0), 1);
    return factor * dModel ** -0.5 * Math.min(count ** -0.5, count * warmup ** -1.5);
  };
}

/** The same rate at every step. @throws RangeError, TypeError unless it is finite and at least 0 */
export function constant(rate: number): Schedule {
  checkNonNegative('constant', 'rate', rate);
  return (step) => {
    checkInteger('constant', 'step', step, 0);
    return rate;
  };
}
