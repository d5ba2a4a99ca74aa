/** Where the time goes, op by op. */
import { checkFunction } from '../runtime/arguments.js';
import { native } from './dispatch.js';

/** Time of one op in a {@link profile}. */
export interface OpTime {
  /** name in the dispatcher, or of a node of the backward pass */
  readonly op: string;
  /** how often it ran */
  readonly calls: number;
  /** in the op itself, without the ops that it called */
  readonly milliseconds: number;
}

/**
 * Runs `work` and tells how long each op took in all, the longest first. All ops of the process are
 * counted, those of other threads and of the backward pass too. Costs under a microsecond an op.
 *
 * @param work may be asynchronous
 * @returns its result, and the times
 * @throws TorchError ERR_ARGUMENT while another profile is running
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
