import { checkProbability } from '../../runtime/arguments.js';
import { checkTensor } from '../../tensor/check.js';
import { callTensor } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Module } from '../module/module.js';

/**
 * Randomly zeroes elements in training mode and scales the others by 1 / (1 - p), so that the
 * expected value is unchanged; the identity in evaluation mode. Like `torch.nn.Dropout`.
 */
export class Dropout extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** Probability of an element to be zeroed. */
  p: number;

  /**
   * @param p default 0.5 (PyTorch's)
   * @throws RangeError unless 0 ≤ p ≤ 1
   */
  constructor(p = 0.5) {
    super();
    this.p = checkProbability('Dropout', 'p', p);
  }

  /** The effective probability: `p` in training mode, else 0. */
  get activeProbability(): number {
    return this.training ? this.p : 0;
  }

  /**
   * @param input any shape, floating-point
   * @returns the same shape; `input` itself if nothing is dropped
   */
  override forward(input: Tensor): Tensor {
    checkTensor('Dropout', 'input', input);
    const probability = checkProbability('Dropout', 'p', this.activeProbability);
    return probability === 0 ? input : callTensor('torchformer::dropout', input, probability);
  }

  /**
   * Computes residual + forward(input), in one pass over memory if elements are dropped.
   *
   * @param input any shape, floating-point
   * @param residual the same shape and dtype; or float32 if `input` is float16 or bfloat16
   * @returns the same shape
   */
  addTo(residual: Tensor, input: Tensor): Tensor {
    checkTensor('Dropout', 'residual', residual);
    checkTensor('Dropout', 'input', input);
    // Hooks and the forward of a subclass must be called.
    const isPlain = this.forward === Dropout.prototype.forward;
    const probability = this.activeProbability;
    const isFused = isPlain && probability > 0 && isSumLikeResidual(residual, input);
    if (!isFused) return residual.add(this.forward(input));
    checkProbability('Dropout', 'p', probability);
    return callTensor('torchformer::dropout', input, probability, { residual });
  }

  protected override extraDescription(): string {
    return `p=${this.p}, inplace=False`;
  }
}

/**
 * Whether residual + input has the shape and dtype of the residual. Only such sums are fused with
 * the operation before or after; others follow the rules of Tensor.add.
 * @internal
 */
export function isSumLikeResidual(residual: Tensor, input: Tensor): boolean {
  return (
    (input.dtype === residual.dtype || isHalfWithFloat(input, residual)) &&
    String(input.shape) === String(residual.shape)
  );
}

function isHalfWithFloat(input: Tensor, residual: Tensor): boolean {
  return residual.dtype === 'float32' && (input.dtype === 'bfloat16' || input.dtype === 'float16');
}
