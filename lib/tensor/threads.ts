/** The number of threads that an op may use. */
import { checkInteger } from '../runtime/arguments.js';
import { native } from './dispatch.js';

/** Sets the number of threads, 1 to 1024, that an op uses in this environment. */
export function setNumThreads(count: number): void {
  native().setNumThreads(checkInteger('setNumThreads', 'count', count, 1, 1024));
}

/** The number of threads that an op uses in this environment. */
export function getNumThreads(): number {
  return native().numThreads();
}
