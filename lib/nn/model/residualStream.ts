import { checkProbability } from '../../runtime/arguments.js';
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

/** A module that the residual stream runs through: a layer, or the connection around a sublayer. */
interface StreamModule<Arguments extends readonly unknown[]> {
  forward(input: Tensor, ...others: Arguments): Tensor;
}

/**
 * What runs along the residual connections of a stack, `[…, size]`: a sum whose last term is added
 * only when it is needed. If a norm of the sum is needed too, one op computes both and passes over
 * memory once, forward and backward ("Add & Norm" of the paper's figure 1). With norms before the
 * sublayers, the norm that follows a sum belongs to the next sublayer, the next layer, or the end of
 * the stack, which is why the sum is carried there unfinished.
 *
 * Ask only once for the sum, or for sum and norm: it draws the dropout. The fields are plain
 * properties, so that a `tidy` that returns a stream keeps its tensors.
 *
 * @internal
 */
export class ResidualStream {
  private constructor(
    private readonly residual: Tensor,
    private readonly addend: Addend | null,
  ) {}

  /** A stream whose sum is complete. @throws TypeError unless it is a tensor */
  static of(sum: Tensor): ResidualStream {
    checkTensor('SublayerConnection', 'input', sum);
    return new ResidualStream(sum, null);
  }

  /** residual + dropout(term). @throws TypeError unless `term` is a tensor */
  static adding(residual: Tensor, term: Tensor, dropout: Dropout): ResidualStream {
    return canWaitForNorm(residual, term, dropout)
      ? new ResidualStream(residual, { term, dropout })
      : new ResidualStream(dropout.addTo(residual, term), null);
  }

  /** Of the sum, `[…, size]`. */
  get shape(): readonly number[] {
    return this.residual.shape;
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

  /** norm(sum). @throws RangeError, TypeError as the norm's forward */
  normed(norm: Norm): ResidualStream {
    return ResidualStream.of(this.sumAndNorm(norm).normed);
  }

  /**
   * The stream after a module. A module with hooks, or whose class has a `forward` of its own,
   * expects the tensor and is given the sum.
   */
  through<Arguments extends readonly unknown[]>(
    module: StreamModule<Arguments>,
    ...others: Arguments
  ): ResidualStream {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- looked up, not called
    return streamForwards.has(module.forward)
      ? (module as unknown as StreamTaker).forward(this, ...others)
      : ResidualStream.of(module.forward(this.sum(), ...others));
  }
}

/** The other side of {@link inStream}. */
interface StreamTaker {
  forward(input: ResidualStream, ...others: readonly unknown[]): ResidualStream;
}

/** The methods `forward` that take a stream as well as a tensor. */
const streamForwards = new WeakSet<object>();

/** Declares that the `forward` of a class calls {@link inStream}. @internal */
export function takesStream(moduleClass: { readonly prototype: { readonly forward: object } }) {
  streamForwards.add(moduleClass.prototype.forward);
}

/**
 * What `forward` of a module in the stream returns: a stream for a stream, a tensor for a tensor.
 * @internal
 */
export function inStream(
  input: Tensor | ResidualStream,
  compute: (stream: ResidualStream) => ResidualStream,
): Tensor {
  if (!(input instanceof ResidualStream)) return compute(ResidualStream.of(input)).sum();
  // Only `through` passes a stream, and expects one. The declared type is the one for everybody else.
  return compute(input) as unknown as Tensor;
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
 * dropout itself has to be called (hooks, a subclass) or the sum would not be like the residual. What
 * is then computed as one op is decided by {@link isPlainNorm}.
 */
function canWaitForNorm(residual: Tensor, term: unknown, dropout: Dropout): boolean {
  if (residual.device === 'cpu' && !waitsOnCpu) return false;
  const isPlainDropout =
    dropout.forward === Dropout.prototype.forward && dropout.addTo === Dropout.prototype.addTo;
  return isPlainDropout && term instanceof Tensor && isSumLikeResidual(residual, term);
}

/** False for norms with hooks, with the forward of a subclass, and of a user's own. */
function isPlainNorm(norm: Norm): boolean {
  return norm.forward === LayerNorm.prototype.forward || norm.forward === RMSNorm.prototype.forward;
}
