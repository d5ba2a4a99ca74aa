/** Products in a shorter number format than the weights, as PyTorch's `autocast`. */
import { checkChoice, checkFunction, checkOptions, describe } from '../runtime/arguments.js';
import type { Device } from './device.js';
import type { DType } from './dtype.js';

/** The formats that {@link autocast} knows. */
export type AutocastDType = 'bfloat16' | 'float16' | 'float32';

/**
 * In which format the products of linear layers are computed: that of their tensors; factors in
 * bfloat16; or factors and results in a half type.
 */
export type Products = 'own' | 'bfloat16' | 'bfloat16_results' | 'float16_results';

/** Options of {@link autocast}. */
export interface AutocastOptions {
  /**
   * what linear layers and norms give to the next layer. For `'bfloat16'` the default is `'float32'` on
   * the CPU, where only products gain by the shorter format, and `'bfloat16'` on GPUs, where memory
   * traffic does too; for `'float16'` it is always `'float16'`
   */
  results?: 'float32' | 'bfloat16' | 'float16';
}

interface Mode {
  readonly dtype: 'bfloat16' | 'float16';
  readonly results: 'float32' | 'bfloat16' | 'float16' | undefined;
}

let current: Mode | null = null;

/**
 * Runs `compute` with the products of linear layers (also those of feed-forward layers and of
 * `linearCrossEntropy`) on factors rounded to bfloat16, forward and backward. Sums, statistics of
 * norms, softmax, losses, the residual stream, weights and their gradients stay float32; so do the
 * results of layers on the CPU (see {@link AutocastOptions.results}). It saves time on GPUs and on
 * processors with bfloat16 instructions (`torchformer doctor` tells); elsewhere only the numbers are
 * the same. Holds for float32 tensors; others keep their own format.
 *
 * `'float16'` has more digits and a far smaller range: small gradients become 0 in it unless the loss
 * is scaled up before the backward pass and the gradients down behind it. `Trainer` does that.
 *
 * @param dtype `'bfloat16'`, `'float16'`, or `'float32'` to turn it off inside
 * @param compute synchronous, as in `noGrad`
 * @returns what `compute` returns
 * @throws TypeError for another dtype, what is no function, or a function that returns a Promise
 */
export function autocast<T>(
  dtype: AutocastDType,
  compute: () => T,
  options: AutocastOptions = {},
): T {
  checkChoice('autocast', 'dtype', dtype, ['bfloat16', 'float16', 'float32']);
  checkFunction('autocast', 'compute', compute);
  checkOptions('autocast', options, ['results']);
  const { results } = options;
  const valid = dtype === 'float16' ? ['float16'] : ['float32', 'bfloat16'];
  if (results !== undefined && !valid.includes(results)) {
    throw new TypeError(
      `autocast: results must be ${valid.map((one) => `'${one}'`).join(' or ')} with ` +
        `'${dtype}', got ${describe(results)}`,
    );
  }
  const before = current;
  current = dtype === 'float32' ? null : { dtype, results };
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

/** What {@link autocast} has set for a layer with this weight. @internal */
export function currentProducts(weight: WeightForm): Products {
  if (current === null || weight.dtype !== 'float32') return 'own';
  const results = resultsOn(current, weight.device);
  return results === 'float32' ? 'bfloat16' : `${results}_results`;
}

/** The format that a layer with this weight gives to the next one. @internal */
export function currentResults(weight: WeightForm): 'own' | 'bfloat16' | 'float16' {
  if (current === null || weight.dtype !== 'float32') return 'own';
  const results = resultsOn(current, weight.device);
  return results === 'float32' ? 'own' : results;
}

interface WeightForm {
  readonly device: Device;
  readonly dtype: DType;
}

function resultsOn({ dtype, results }: Mode, device: Device): 'float32' | 'bfloat16' | 'float16' {
  if (dtype === 'float16') return dtype;
  return results ?? (device === 'cpu' ? 'float32' : 'bfloat16');
}
