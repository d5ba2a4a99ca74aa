/** Measures the time of each op. */
import { checkFunction } from '../runtime/arguments.js';
import { native } from './dispatch.js';

/** Time of one op in a {@link profile}. */
export interface OpTime {
  /** name in the dispatcher, or of a node of the backward pass */
  readonly op: string;
  /** number of calls */
  readonly calls: number;
  /** total time in the op itself, excluding the ops that it called */
  readonly milliseconds: number;
}

/**
 * Runs `work` and measures the total time of each op, longest first. All ops of the process are
 * counted, including those of other threads and of the backward pass. The overhead is less than a
 * microsecond per op.
 *
 * @param work may be asynchronous
 * @returns the result of `work`, and the times
 * @throws TorchError ERR_ARGUMENT if another profile is running
 */
export async function profile<T>(
  work: () => T | Promise<T>,
): Promise<{ result: T; times: OpTime[] }> {
  checkFunction('profile', 'work', work);
  native().startProfile();
  let times: OpTime[] = [];
  let result: T;
  try {
    result = await work();
  } finally {
    times = native().stopProfile();
  }
  times.sort((a, b) => b.milliseconds - a.milliseconds);
  return { result, times };
}
