import type { Schedule } from '../optim/schedule.js';
import { checkInteger, checkPositive } from '../runtime/arguments.js';

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
  return (step) => (step < steps ? (rate * step) / steps : rate);
}
