import type { Schedule } from '../optim/schedule.js';
import { checkInteger, checkPositive } from '../runtime/arguments.js';

/**
 * Linear growth to `rate` over the first `steps` steps, then constant: step n of them has
 * `rate · n / steps`. With 0 steps the rate is constant from the start.
 *
 * @param rate the rate behind the warmup
 * @param steps how many steps the growth takes, at least 0
 * @throws RangeError, TypeError for a rate that is not finite and above 0, or bad steps
 */
export function warmup(rate: number, steps: number): Schedule {
  checkPositive('warmup', 'rate', rate);
  checkInteger('warmup', 'steps', steps, 0);
  return (step) => (step < steps ? (rate * step) / steps : rate);
}
