import {
  checkFiniteNumber,
  checkInstance,
  checkInteger,
  checkOptions,
  orDefault,
} from '../../runtime/arguments.js';
import { checkTensor, formatShape } from '../../tensor/check.js';
import { currentProducts } from '../../tensor/autocast.js';
import { call } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures, checkIds, checkSameDevice } from '../check.js';
import { checkIdRange, isKnownToFit } from '../idRange.js';
import { Linear } from '../layers/linear.js';
import {
  checkedSmoothing,
  divergenceTarget,
  smoothingNames,
  type LabelSmoothingOptions,
} from './labelSmoothing.js';

/** Options of {@link linearCrossEntropy}. */
export interface LinearCrossEntropyOptions extends LabelSmoothingOptions {
  /** targets with this id are ignored, usually the padding id; default null: none */
  ignoreIndex?: number | null;
  /** factor of the sum, for example 1 / tokens; default 1 */
  scale?: number;
}

/** Result of {@link linearCrossEntropy}. */
export interface LinearCrossEntropy {
  /** scale · sum of the losses of all rows, a differentiable scalar */
  readonly loss: Tensor;
  /** -log of the probability of each target (smoothed with `labelSmoothing`), `[N]`, detached */
  readonly tokenLosses: Tensor;
  /** Number of rows whose highest score (the first, if tied) is the target's: int64 scalar. */
  readonly correct: Tensor;
}

/**
 * `crossEntropy(linear.forward(input), targets)` in one native op, which computes the scores for a
 * few rows at a time, never for all, and the gradients along with them. For the last layer of a
 * model, whose scores would be its largest tensor.
 *
 * @param input `[N, inFeatures]`
 * @param linear the last layer
 * @param targets ids `[N]`, int64 or int32
 * @throws RangeError if shapes do not match, or a target is outside the classes; TypeError for
 *   wrong dtypes, or if `linear` has hooks or a user-defined forward; TorchError ERR_DEVICE
 */
export function linearCrossEntropy(
  input: Tensor,
  linear: Linear,
  targets: Tensor,
  options: LinearCrossEntropyOptions = {},
): LinearCrossEntropy {
  const owner = 'linearCrossEntropy';
  checkOptions(owner, options, ['ignoreIndex', ...smoothingNames, 'scale']);
  const ignoreIndex = options.ignoreIndex ?? null;
  if (ignoreIndex !== null) {
    checkInteger(owner, 'ignoreIndex', ignoreIndex, Number.MIN_SAFE_INTEGER);
  }
  const { labelSmoothing, smoothingForm } = checkedSmoothing(owner, options);
  const scale = checkFiniteNumber(owner, 'scale', orDefault(options.scale, 1));
  checkInstance(owner, 'linear', linear, Linear, 'model.generator.proj');
  if (linear.forward !== Linear.prototype.forward) {
    throw new TypeError(
      `${owner}: linear has hooks or a user-defined forward, which a single op cannot run; ` +
        'use crossEntropy(linear.forward(input), targets)',
    );
  }
  const isDivergence = smoothingForm === 'klDivergence';
  // Checks that the classes are enough.
  if (isDivergence) divergenceTarget(owner, labelSmoothing, linear.outFeatures, ignoreIndex);
  checkTensor(owner, 'input', input);
  checkFeatures(owner, 'input', input, linear.inFeatures, linear.weight);
  checkIds(owner, 'targets', targets);
  checkSameDevice(owner, 'targets', targets, 'the inputs', input);
  if (input.ndim !== 2 || targets.ndim !== 1 || input.shape[0] !== targets.shape[0]) {
    throw new RangeError(
      `${owner}: input must be [N, ${linear.inFeatures}] and targets [N], ` +
        `got ${formatShape(input.shape)} and ${formatShape(targets.shape)}`,
    );
  }
  const [loss, tokenLosses, correct] = tidy(() => {
    const ids = targets.to({ dtype: 'int64' });
    if (!isKnownToFit(targets, linear.outFeatures)) {
      const counted = ignoreIndex === null ? targets : ids.mul(ids.ne(ignoreIndex));
      checkIdRange(owner, 'targets', counted, linear.outFeatures);
    }
    return call(
      'torchformer::linear_cross_entropy',
      // Under autocast the previous layer may return bfloat16, which float32 represents exactly.
      input.to({ dtype: linear.weight.dtype }),
      linear.weight,
      linear.bias,
      ids,
      // -1 is not a valid id: nothing is ignored.
      ignoreIndex ?? -1,
      labelSmoothing,
      scale,
      {
        products: currentProducts(linear.weight),
        ...(isDivergence ? { smoothing_form: 'kl_divergence' } : {}),
      },
    ) as Tensor[];
  }) as [Tensor, Tensor, Tensor];
  return { loss, tokenLosses, correct };
}
