import { checkChoice, checkProbability, orDefault } from '../../runtime/arguments.js';

/**
 * The distribution that label smoothing s gives to each target:
 * - `'crossEntropy'`: 1 - s at the target plus s / classes at every class, and the loss is the
 *   cross-entropy: PyTorch's `cross_entropy(…, label_smoothing=s)`.
 * - `'klDivergence'`: 1 - s at the target, 0 at the ignored id, and s shared equally by the other
 *   classes; the loss is the divergence from this distribution, which is 0 at best: PyTorch's
 *   `KLDivLoss` as in The Annotated Transformer's `LabelSmoothing`.
 */
export type SmoothingForm = 'crossEntropy' | 'klDivergence';

/** Label smoothing of a loss (paper, section 5.4). */
export interface LabelSmoothingOptions {
  /** part of each target given to other classes, from 0 to 1; default 0; the paper: 0.1 */
  labelSmoothing?: number;
  /** the classes that it is given to; default `'crossEntropy'`: all of them */
  smoothingForm?: SmoothingForm;
}

/** Names of the options. */
export const smoothingNames = ['labelSmoothing', 'smoothingForm'] as const;

/** Checks the options and returns them with their defaults. @throws RangeError, TypeError */
export function checkedSmoothing(
  owner: string,
  { labelSmoothing, smoothingForm }: LabelSmoothingOptions,
): Required<LabelSmoothingOptions> {
  return {
    labelSmoothing: checkProbability(owner, 'labelSmoothing', orDefault(labelSmoothing, 0)),
    smoothingForm: checkChoice(owner, 'smoothingForm', orDefault(smoothingForm, 'crossEntropy'), [
      'crossEntropy',
      'klDivergence',
    ]),
  };
}

/**
 * The distribution of `'klDivergence'`: `everywhere` at all classes but `excluded`, `extra` more at the
 * target, and the sum of t log t.
 *
 * @throws RangeError if no class is left to share the smoothing
 */
export function divergenceTarget(
  owner: string,
  labelSmoothing: number,
  classes: number,
  ignoreIndex: number | null,
): { extra: number; everywhere: number; excluded: number | null; entropy: number } {
  const excluded =
    ignoreIndex !== null && ignoreIndex >= 0 && ignoreIndex < classes ? ignoreIndex : null;
  const others = classes - (excluded === null ? 1 : 2);
  if (labelSmoothing === 0) return { extra: 1, everywhere: 0, excluded, entropy: 0 };
  if (others < 1) {
    throw new RangeError(
      `${owner}: smoothingForm 'klDivergence' needs a class other than the target and ` +
        `ignoreIndex, got ${classes} classes and ignoreIndex ${String(ignoreIndex)}`,
    );
  }
  const everywhere = labelSmoothing / others;
  const atTarget = 1 - labelSmoothing;
  const entropy =
    labelSmoothing * Math.log(everywhere) + (atTarget > 0 ? atTarget * Math.log(atTarget) : 0);
  return { extra: atTarget - everywhere, everywhere, excluded, entropy };
}
