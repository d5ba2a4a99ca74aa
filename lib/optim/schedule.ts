import {
  checkInteger,
  checkNonNegative,
  checkPositive,
  checkRequiredOptions,
} from '../runtime/arguments.js';

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

/**
 * Increases the learning rate linearly to `rate` over the first `steps` steps, then keeps it constant:
 * step n of them has `rate · n / steps`. With 0 steps the rate is constant from the start.
 *
 * @param rate the rate after the warmup
 * @param steps number of warmup steps, at least 0
 * @throws RangeError, TypeError if `rate` is not finite and positive, or `steps` is not a count
 */
export function warmup(rate: number, steps: number): Schedule {
  checkPositive('warmup', 'rate', rate);
  checkInteger('warmup', 'steps', steps, 0);
  return (step) => {
    checkInteger('warmup', 'step', step, 0);
    return step < steps ? (rate * step) / steps : rate;
  };
}

/** Settings of {@link inverseSquareRoot}. */
export interface InverseSquareRootOptions {
  /** the highest rate, reached at step `warmup` */
  learningRate: number;
  /** steps of linear growth, at least 1; default 4000 */
  warmup?: number;
}

/**
 * Linear growth to `learningRate`, then decay as learningRate · √(warmup / step): the shape of
 * {@link noam} with the highest rate given (fairseq's `inverse_sqrt`).
 *
 * @throws RangeError, TypeError for settings out of range, including `warmup` 0
 */
export function inverseSquareRoot(options: InverseSquareRootOptions): Schedule {
  const owner = 'inverseSquareRoot';
  checkRequiredOptions(owner, options, ['learningRate', 'warmup'], 'learningRate');
  const { learningRate, warmup: warmupSteps = 4000 } = options;
  checkPositive(owner, 'learningRate', learningRate);
  checkInteger(owner, 'warmup', warmupSteps, 1);
  return (step) => {
    checkInteger(owner, 'step', step, 0);
    return learningRate * Math.min(step / warmupSteps, Math.sqrt(warmupSteps / Math.max(step, 1)));
  };
}

/** Settings of {@link cosine} and {@link linearDecay}. */
export interface DecayOptions {
  /** the highest rate, reached at step `warmup` */
  learningRate: number;
  /** the step at which the rate has fallen to `min`; it stays there */
  steps: number;
  /** steps of linear growth from 0; default 0 */
  warmup?: number;
  /** the last rate; default 0 */
  min?: number;
}

/**
 * Linear growth to `learningRate`, then decay to `min` along half a cosine (Loshchilov and Hutter
 * 2017, without restarts): min + (learningRate - min) · (1 + cos(π · progress)) / 2, with progress
 * from 0 at step `warmup` to 1 at step `steps`.
 *
 * @throws RangeError, TypeError for settings out of range
 */
export function cosine(options: DecayOptions): Schedule {
  return decay('cosine', options, (progress) => (1 + Math.cos(Math.PI * progress)) / 2);
}

/**
 * Linear growth to `learningRate`, then linear decay to `min`, which is reached at step `steps`.
 *
 * @throws RangeError, TypeError for settings out of range
 */
export function linearDecay(options: DecayOptions): Schedule {
  return decay('linearDecay', options, (progress) => 1 - progress);
}

/** @param shape falls from 1 to 0 while the progress goes from 0 to 1 */
function decay(
  owner: string,
  options: DecayOptions,
  shape: (progress: number) => number,
): Schedule {
  const names = ['learningRate', 'steps', 'warmup', 'min'];
  checkRequiredOptions(owner, options, names, 'learningRate and steps');
  const { learningRate, steps, warmup: warmupSteps = 0, min = 0 } = options;
  checkPositive(owner, 'learningRate', learningRate);
  checkInteger(owner, 'warmup', warmupSteps, 0);
  checkInteger(owner, 'steps', steps, warmupSteps + 1);
  checkNonNegative(owner, 'min', min);
  if (min > learningRate) {
    throw new RangeError(
      `${owner}: min must be at most learningRate (${learningRate}), got ${min}`,
    );
  }
  return (step) => {
    checkInteger(owner, 'step', step, 0);
    if (step < warmupSteps) return (learningRate * step) / warmupSteps;
    const progress = Math.min(1, (step - warmupSteps) / (steps - warmupSteps));
    return min + (learningRate - min) * shape(progress);
  };
}
