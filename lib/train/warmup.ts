import type { Schedule } from '../optim/schedule.js';
import { checkInteger, describe } from '../runtime/options.js';

/**
 * Linear growth to `rate` over the first `steps` steps, then constant: step n of them has
 * `rate · n / steps`. With 0 steps the rate is constant from the start.
 *
 * @param rate the rate behind the warmup
 * @param steps how many steps the growth takes, at least 0
 * @throws RangeError, TypeError for a rate that is not finite and above 0, or bad steps
 */
export function warmup(rate: number, steps: number): Schedule {
  if (typeof rate !== 'number') {
    throw new TypeError(`warmup: rate must be a number, got ${describe(rate)}`);
  }
  if (!(rate > 0 && rate < Infinity)) {
    throw new RangeError(`warmup: rate must be a finite number above 0, got ${rate}`);
  }
  checkInteger('warmup', 'steps', steps, 0);
  return (step) => (step < steps ? (rate * step) / steps : rate);
}
