/** Results that do not depend on what else is in the batch. */
import { checkFunction } from '../runtime/arguments.js';
import { refusePromise } from './scope.js';

let active = false;

/**
 * Runs `compute` with linear layers (including feed-forward layers and `linearCrossEntropy`) whose
 * results for a row of the input have the same bits whatever the other rows are, how many there are,
 * in which order, and on how many threads: a sentence alone gives what it gives in any batch. Without it they agree within
 * rounding. It applies to float32 and float64 on the CPU outside of `autocast`, forward and backward.
 *
 * On processors with AVX2 it costs nothing forward: their kernels have this property in any case,
 * unless `TORCHFORMER_GEMM` names a library. Backward, products of fewer than 64 rows take up to twice
 * the time; elsewhere each row is multiplied by itself, which is several times slower.
 *
 * @param compute a synchronous function, as for `noGrad`
 * @returns the result of `compute`
 * @throws TypeError if `compute` is not a function or returns a Promise
 */
export function batchInvariant<T>(compute: () => T): T {
  checkFunction('batchInvariant', 'compute', compute);
  const before = active;
  active = true;
  try {
    const result = compute();
    refusePromise(
      result,
      'batchInvariant: compute must be synchronous: code after an await would run without it',
    );
    return result;
  } finally {
    active = before;
  }
}

/** Whether {@link batchInvariant} is active. @internal */
export function isBatchInvariant(): boolean {
  return active;
}
