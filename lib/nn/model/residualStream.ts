import { checkProbability } from '../../runtime/options.js';
import { checkTensor } from '../../tensor/check.js';
import { Tensor } from '../../tensor/tensor.js';
import { Dropout, isSumLikeResidual } from '../layers/dropout.js';
import { LayerNorm } from '../layers/layerNorm.js';
import type { Norm } from '../layers/norm.js';
import { RMSNorm } from '../layers/rmsNorm.js';

/** What is still to be added to a residual: dropout(term). */
interface Addend {
  readonly term: Tensor;
  readonly dropout: Dropout;
}

/**
 * What runs along the residual connections of a stack, `[…, size]`: a sum whose last term, on GPUs,
 * is added only when somebody asks. Who asks for the sum together with a norm of it gets both from
 * one kernel, which goes through memory once, forward and backward ("Add & Norm" of the paper's
 * figure 1). With norms before the sublayers, the norm behind a sum is that of the next sublayer, of
 * the next layer, or the one behind the stack; waiting is how the sum meets it.
 *
 * Sum or sum and norm are to be asked for once, since that draws the dropout. The fields are plain
 * properties, so that a `tidy` that returns a stream keeps its tensors.
 *
 * @internal
 */
export class ResidualStream {
  private constructor(
    private readonly residual: Tensor,
    private readonly addend: Addend | null,
  ) {}

  /** A stream whose sum is there already. @throws TypeError unless it is a tensor */
  static of(sum: Tensor): ResidualStream {
    checkTensor('SublayerConnection', 'input', sum);
    return new ResidualStream(sum, null);
  }

  /** A stream of residual + dropout(term). @throws TypeError when `term` is no tensor */
  static adding(residual: Tensor, term: Tensor, dropout: Dropout): ResidualStream {
    return canWaitForNorm(residual, term, dropout)
      ? new ResidualStream(residual, { term, dropout })
      : new ResidualStream(dropout.addTo(residual, term), null);
  }

  /** `[…, size]` */
  sum(): Tensor {
    const { residual, addend } = this;
    return addend === null ? residual : addend.dropout.addTo(residual, addend.term);
  }

  /** Both `[…, size]`. @throws RangeError, TypeError as the norm's forward */
  sumAndNorm(norm: Norm): { sum: Tensor; normed: Tensor } {
    const { residual, addend } = this;
    if (addend === null || !isPlainNorm(norm)) {
      const sum = this.sum();
      return { sum, normed: norm.forward(sum) };
    }
    const { term, dropout } = addend;
    const probability = checkProbability('Dropout', 'p', dropout.activeProbability);
    const [sum, normed] = norm.forwardOfSum(residual, term, probability);
    return { sum, normed };
  }
}

let waitsOnCpu = false;

/**
 * Lets sums wait for their norms on the CPU too, where it gains nothing and the last bits differ from
 * those of the norm alone: for tests of the way that GPUs go.
 * @internal
 */
export function waitForNormsOnCpu(waits: boolean): void {
  waitsOnCpu = waits;
}

/**
 * Whether residual + dropout(term) may become one op with the norm to come: on GPUs, unless the
 * dropout has to be asked itself (hooks, a subclass) or the sum would not be like the residual.
 * What then becomes one op and what does not is the norm's to say, by {@link isPlainNorm}.
 */
function canWaitForNorm(residual: Tensor, term: unknown, dropout: Dropout): boolean {
  if (residual.device === 'cpu' && !waitsOnCpu) return false;
  const isPlainDropout =
    dropout.forward === Dropout.prototype.forward && dropout.addTo === Dropout.prototype.addTo;
  return isPlainDropout && term instanceof Tensor && isSumLikeResidual(residual, term);
}

/** Not with hooks or the forward of a subclass, which have to be asked; nor one of a user's own. */
function isPlainNorm(norm: Norm): boolean {
  return norm.forward === LayerNorm.prototype.forward || norm.forward === RMSNorm.prototype.forward;
}
