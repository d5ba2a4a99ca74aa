/** Products in a shorter number format than the weights, as PyTorch's `autocast`. */
import { checkFunction, describe } from '../runtime/options.js';

/** In which format the products of linear layers are computed: that of their tensors, or bfloat16. */
export type Products = 'own' | 'bfloat16';

let current: Products = 'own';

/**
 * Runs `compute` with the products of linear layers (also those of feed-forward layers and of
 * `linearCrossEntropy`) on factors rounded to bfloat16, forward and backward; sums, norms, softmax,
 * losses, results and the weights themselves stay float32. It saves time on processors with
 * bfloat16 instructions (`torchformer doctor` tells); elsewhere only the numbers are the same.
 * Holds for float32 tensors on the CPU; others keep their own format.
 *
 * @param dtype `'bfloat16'`, or `'float32'` to turn it off inside
 * @param compute synchronous, as in `noGrad`
 * @returns what `compute` returns
 * @throws TypeError for another dtype, what is no function, or a function that returns a Promise
 */
export function autocast<T>(dtype: 'bfloat16' | 'float32', compute: () => T): T {
  if (dtype !== 'bfloat16' && dtype !== 'float32') {
    throw new TypeError(`autocast: dtype must be 'bfloat16' or 'float32', got ${describe(dtype)}`);
  }
  checkFunction('autocast', 'compute', compute);
  const before = current;
  current = dtype === 'bfloat16' ? 'bfloat16' : 'own';
  try {
    const result = compute();
    if (result instanceof Promise) {
      throw new TypeError(
        'autocast: compute must be synchronous: what it awaits would run with other products',
      );
    }
    return result;
  } finally {
    current = before;
  }
}

/** What {@link autocast} has set. @internal */
export function currentProducts(): Products {
  return current;
}
