import { checkProbability } from '../../runtime/arguments.js';
import { checkTensor } from '../../tensor/check.js';
import { Tensor } from '../../tensor/tensor.js';
import { Dropout, isSumLikeResidual } from '../layers/dropout.js';
import { LayerNorm } from '../layers/layerNorm.js';
import type { Norm } from '../layers/norm.js';
import { RMSNorm } from '../layers/rmsNorm.js';

/** A term still to be added to a residual: dropout(term). */
interface Addend {
  readonly term: Tensor;
  readonly dropout: Dropout;
}

/** A module in the residual stream: a layer, or the connection around a sublayer. */
interface StreamModule<Arguments extends readonly unknown[]> {
  forward(input: Tensor, ...others: Arguments): Tensor;
}

/**
 * The residual sum of a stack, `[…, size]`, whose last term is added only when the sum is needed. If
 * a norm of the sum is needed too, one op computes both in one pass over memory, forward and backward
 * ("Add & Norm" in figure 1 of the paper). With norms before the sublayers, the norm after a sum
 * belongs to the next sublayer, the next layer or the end of the stack, so the incomplete sum is
 * passed on to it.
 *
 * Call `sum` or `sumAndNorm` only once, because each call draws the dropout. The fields are plain
 * properties, so that a `tidy` that returns a stream keeps its tensors.
 *
 * @internal
 */
export class ResidualStream {
  private constructor(
    private readonly residual: Tensor,
    private readonly addend: Addend | null,
  ) {}

  /** A stream with a complete sum. @throws TypeError unless `sum` is a tensor */
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

  /** Shape of the sum, `[…, size]`. */
  get shape(): readonly number[] {
    return this.residual.shape;
  }

  /** `[…, size]` */
  sum(): Tensor {
    const { residual, addend } = this;
    return addend === null ? residual : addend.dropout.addTo(residual, addend.term);
  }

  /** Both `[…, size]`. @throws the errors of the norm's forward */
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

  /** norm(sum). @throws the errors of the norm's forward */
  normed(norm: Norm): ResidualStream {
    return ResidualStream.of(this.sumAndNorm(norm).normed);
  }

  /**
   * The stream after a module. A module with hooks or a user-defined `forward` gets the sum as a
   * tensor.
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

/** A module whose `forward` calls {@link inStream}. */
interface StreamTaker {
  forward(input: ResidualStream, ...others: readonly unknown[]): ResidualStream;
}

/** The `forward` methods that accept a stream as well as a tensor. */
const streamForwards = new WeakSet<object>();

/** Declares that the `forward` of a class calls {@link inStream}. @internal */
export function takesStream(moduleClass: { readonly prototype: { readonly forward: object } }) {
  streamForwards.add(moduleClass.prototype.forward);
}

/**
 * Implements `forward` of a module in the stream: returns a stream for a stream, and a tensor for a
 * tensor.
 * @internal
 */
export function inStream(
  input: Tensor | ResidualStream,
  compute: (stream: ResidualStream) => ResidualStream,
): Tensor {
  if (!(input instanceof ResidualStream)) return compute(ResidualStream.of(input)).sum();
  // Only `through` passes a stream and expects one back. The declared type is for all other callers.
  return compute(input) as unknown as Tensor;
}

/**
 * Whether residual + dropout(term) may be fused with the next norm: unless the dropout module must be
 * called (hooks, a subclass) or the sum's shape or dtype would differ from the residual's.
 * {@link isPlainNorm} then decides whether the norm can be fused.
 */
function canWaitForNorm(residual: Tensor, term: unknown, dropout: Dropout): boolean {
  const isPlainDropout =
    dropout.forward === Dropout.prototype.forward && dropout.addTo === Dropout.prototype.addTo;
  return isPlainDropout && term instanceof Tensor && isSumLikeResidual(residual, term);
}

/** False for norms with hooks, subclasses with their own forward, and user-defined norms. */
function isPlainNorm(norm: Norm): boolean {
  return norm.forward === LayerNorm.prototype.forward || norm.forward === RMSNorm.prototype.forward;
}
