import { checkChoice, checkInteger, checkOptions } from '../../runtime/arguments.js';
import { checkTensor, formatShape } from '../../tensor/check.js';
import { callTensor } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkIds, checkSameDevice } from '../check.js';
import { checkIdRange } from '../idRange.js';
import { Module } from '../module/module.js';
import {
  checkedSmoothing,
  divergenceTarget,
  smoothingNames,
  type LabelSmoothingOptions,
  type SmoothingForm,
} from './labelSmoothing.js';

/** Options of {@link crossEntropy} and {@link CrossEntropyLoss}. */
export interface CrossEntropyOptions extends LabelSmoothingOptions {
  /** targets with this id are ignored, usually the padding id; default null: none */
  ignoreIndex?: number | null;
  /**
   * `'sum'` (default, as in seed 001: the caller divides by the tokens of the whole step),
   * `'mean'` over the targets that are not ignored, `'none'`: one loss per target, 0 if ignored
   */
  reduction?: 'sum' | 'mean' | 'none';
}

/**
 * Cross entropy, -log softmax(input)[target], without the targets equal to `ignoreIndex`.
 *
 * `input` may be logits or log-probabilities: log-softmax does not change the latter. Pass
 * `model.generator.logits(x)`, so that it is computed only once. float16 and bfloat16 inputs are
 * converted to float32, which is also the dtype of the result.
 *
 * If all targets are ignored, the loss and its gradients are 0, never NaN.
 *
 * @param input `[…, classes]`, floating-point
 * @param targets ids `[…]`, int64 or int32
 * @returns a scalar, or `[…]` for reduction `'none'`
 * @throws RangeError if shapes do not match, or a target is outside the classes
 */
export function crossEntropy(
  input: Tensor,
  targets: Tensor,
  options: CrossEntropyOptions = {},
): Tensor {
  const { ignoreIndex, reduction, labelSmoothing, smoothingForm } = checkedOptions(options);
  checkTensor('crossEntropy', 'input', input);
  checkIds('crossEntropy', 'targets', targets);
  checkSameDevice('crossEntropy', 'targets', targets, 'the inputs', input);
  const shape = input.shape;
  const classes = shape.at(-1);
  if (classes === undefined || shape.slice(0, -1).join() !== targets.shape.join()) {
    throw new RangeError(
      `crossEntropy: input must be [..., classes] and targets [...], ` +
        `got ${formatShape(shape)} and ${formatShape(targets.shape)}`,
    );
  }
  return tidy(() => {
    const flat = targets.reshape(-1).to({ dtype: 'int64' });
    const counted = ignoreIndex === null ? null : flat.ne(ignoreIndex);
    checkIdRange('crossEntropy', 'targets', counted === null ? flat : flat.mul(counted), classes);
    const half = input.dtype === 'float16' || input.dtype === 'bfloat16';
    const rows = (half ? input.to({ dtype: 'float32' }) : input).reshape(-1, classes);
    const nativeReduction = nativeReductions[reduction === 'mean' ? 'sum' : reduction];
    const losses =
      smoothingForm === 'klDivergence'
        ? divergences(rows, flat, counted, ignoreIndex, labelSmoothing, reduction !== 'none')
        : callTensor(
            'aten::cross_entropy_loss',
            rows,
            flat,
            null,
            nativeReduction,
            // -1 is not a valid id: nothing is ignored.
            ignoreIndex ?? -1,
            labelSmoothing,
          );
    if (reduction === 'none') return losses.reshape(targets.shape);
    if (reduction === 'sum') return losses;
    const count = counted === null ? flat.numel : counted.sum().item();
    return losses.div(Math.max(count, 1));
  });
}

/** The losses of `smoothingForm: 'klDivergence'`, or their sum. */
function divergences(
  rows: Tensor,
  targets: Tensor,
  counted: Tensor | null,
  ignoreIndex: number | null,
  labelSmoothing: number,
  isSummed: boolean,
): Tensor {
  const classes = rows.shape[1] as number;
  const form = divergenceTarget('crossEntropy', labelSmoothing, classes, ignoreIndex);
  const logs = rows.logSoftmax(-1);
  const ids = counted === null ? targets : targets.mul(counted);
  let losses = logs.gather(1, ids.unsqueeze(1)).squeeze(1).mul(-form.extra);
  if (form.everywhere > 0) {
    const all = logs.sum(1);
    const others =
      form.excluded === null ? all : all.sub(logs.narrow(1, form.excluded, 1).squeeze(1));
    losses = losses.sub(others.mul(form.everywhere)).add(form.entropy);
  }
  if (counted !== null) losses = losses.maskedFill(counted.logicalNot(), 0);
  return isSummed ? losses.sum() : losses;
}

/** {@link crossEntropy} as a module, like `torch.nn.CrossEntropyLoss`. */
export class CrossEntropyLoss extends Module {
  /** Targets with this id are ignored; null: none. */
  readonly ignoreIndex: number | null;
  /** Sum, mean over the targets that are not ignored, or one loss per target. */
  readonly reduction: 'sum' | 'mean' | 'none';
  /** Part of each target given to other classes. */
  readonly labelSmoothing: number;
  /** The classes that it is given to. */
  readonly smoothingForm: SmoothingForm;

  /** @throws TypeError for an invalid option */
  constructor(options: CrossEntropyOptions = {}) {
    super();
    const { ignoreIndex, reduction, labelSmoothing, smoothingForm } = checkedOptions(options);
    this.ignoreIndex = ignoreIndex;
    this.reduction = reduction;
    this.labelSmoothing = labelSmoothing;
    this.smoothingForm = smoothingForm;
  }

  /**
   * See {@link crossEntropy}.
   *
   * @param input logits or log-probabilities `[…, classes]`
   * @param targets ids `[…]`, int64 or int32
   * @returns a scalar, or `[…]` for reduction `'none'`
   * @throws RangeError if shapes do not match, or a target is outside the classes
   */
  override forward(input: Tensor, targets: Tensor): Tensor {
    const { ignoreIndex, reduction, labelSmoothing, smoothingForm } = this;
    const smoothing = { labelSmoothing, smoothingForm };
    return crossEntropy(input, targets, { ignoreIndex, reduction, ...smoothing });
  }
}

/** ATen's numbers of the reductions. */
const nativeReductions = { none: 0, sum: 2 } as const;

function checkedOptions(options: CrossEntropyOptions): Required<CrossEntropyOptions> {
  checkOptions('crossEntropy', options, ['ignoreIndex', 'reduction', ...smoothingNames]);
  const { ignoreIndex = null, reduction = 'sum' } = options;
  if (ignoreIndex !== null) {
    checkInteger('crossEntropy', 'ignoreIndex', ignoreIndex, Number.MIN_SAFE_INTEGER);
  }
  checkChoice('crossEntropy', 'reduction', reduction, ['sum', 'mean', 'none']);
  return { ignoreIndex, reduction, ...checkedSmoothing('crossEntropy', options) };
}
