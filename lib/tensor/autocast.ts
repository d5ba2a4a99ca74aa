/** Mixed precision: computes matrix products in a lower precision, like PyTorch's `autocast`. */
import { checkChoice, checkFunction, checkOptions, describe } from '../runtime/arguments.js';
import { isBatchInvariant } from './batchInvariant.js';
import type { Device } from './device.js';
import type { DType } from './dtype.js';
import { refusePromise } from './scope.js';

/** The dtypes that {@link autocast} supports. */
export type AutocastDType = 'bfloat16' | 'float16' | 'float32';

/**
 * How the matrix products of linear layers are computed: in the dtype of their tensors; so that the
 * bits of a row do not depend on the other rows; with factors
 * in bfloat16; or with factors and results in bfloat16 or float16.
 */
export type Products = 'own' | 'own_rows' | 'bfloat16' | 'bfloat16_results' | 'float16_results';

/** Options of {@link autocast}. */
export interface AutocastOptions {
  /**
   * dtype of the results of linear layers and norms. For `'bfloat16'` the default is `'float32'` on
   * the CPU, where only products become faster, and `'bfloat16'` on GPUs, where less memory traffic
   * helps too; for `'float16'` it is always `'float16'`
   */
  results?: 'float32' | 'bfloat16' | 'float16';
}

interface Mode {
  readonly dtype: 'bfloat16' | 'float16';
  readonly results: 'float32' | 'bfloat16' | 'float16' | undefined;
}

let current: Mode | null = null;

/**
 * Runs `compute` with the factors of matrix products in linear layers (including feed-forward layers
 * and `linearCrossEntropy`) rounded to bfloat16, forward and backward. Sums, statistics of norms,
 * softmax, losses, the residual stream, weights and their gradients stay float32; so do the results
 * of layers on the CPU (see {@link AutocastOptions.results}). It is faster on GPUs and on processors
 * with bfloat16 instructions (`torchformer doctor` reports them); elsewhere it computes the same
 * numbers, but saves no time. It applies to float32 tensors; others keep their dtype.
 *
 * `'float16'` has more precision but a far smaller range: small gradients become 0 unless the loss is
 * scaled up before the backward pass and the gradients are scaled down after it. `Trainer` does this.
 *
 * @param dtype `'bfloat16'`, `'float16'`, or `'float32'` to disable an outer autocast
 * @param compute a synchronous function, as for `noGrad`
 * @returns the result of `compute`
 * @throws TypeError if `dtype` is invalid, or `compute` is not a function or returns a Promise
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
    refusePromise(
      result,
      'autocast: compute must be synchronous: code after an await would run without autocast',
    );
    return result;
  } finally {
    current = before;
  }
}

/** How {@link autocast} computes the products of a layer with this weight. @internal */
export function currentProducts(weight: WeightForm): Products {
  if (current === null || weight.dtype !== 'float32') {
    return isBatchInvariant() ? 'own_rows' : 'own';
  }
  const results = resultsOn(current, weight.device);
  return results === 'float32' ? 'bfloat16' : `${results}_results`;
}

/** The dtype of the results of a layer with this weight. @internal */
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
