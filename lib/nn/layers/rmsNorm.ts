import { checkInteger, checkOptions, checkPositive, orDefault } from '../../runtime/arguments.js';
import { ones } from '../../tensor/create.js';
import { currentResults } from '../../tensor/autocast.js';
import { callTensor, callTensors } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { Module } from '../module/module.js';
import { Parameter } from '../module/parameter.js';
import { rememberRegistered } from '../module/registration.js';

/** Options of {@link RMSNorm}. */
export interface RMSNormOptions {
  /** added to the mean square; default 1e-6 */
  eps?: number;
}

/**
 * Divides the last dimension by its root mean square and scales it by a learned vector, without
 * subtracting the mean and without a bias (Zhang and Sennrich 2019):
 * `weight · x / √(mean(x²) + eps)`, in one native op. Like `torch.nn.RMSNorm`, whose default eps is
 * the machine epsilon of the dtype.
 */
export class RMSNorm extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** `[features]`, initialized to ones */
  weight: Parameter;
  /** Size of the last dimension, which is normalized. */
  readonly features: number;
  /** Added to the mean square. */
  readonly eps: number;

  /** @throws RangeError, TypeError for an invalid size or eps */
  constructor(features: number, options: RMSNormOptions = {}) {
    super();
    checkOptions('RMSNorm', options, ['eps']);
    this.features = checkInteger('RMSNorm', 'features', features, 1);
    this.eps = checkPositive('RMSNorm', 'eps', orDefault(options.eps, 1e-6));
    this.weight = tidy(() => new Parameter(ones([features])));
    rememberRegistered(this);
  }

  /**
   * @param input `[…, features]`
   * @returns the same shape
   * @throws RangeError if the last dimension is wrong; TypeError or TorchError ERR_DEVICE if dtype or
   *   device differ from the weights'
   */
  override forward(input: Tensor): Tensor {
    checkFeatures('RMSNorm', 'input', input, this.features, this.weight);
    return callTensor('torchformer::rms_norm', input, this.weight, this.eps, {
      results: currentResults(this.weight),
    });
  }

  /**
   * Computes residual + dropout(addend) and {@link RMSNorm.forward} of the sum in one op.
   *
   * @param residual `[…, features]`, as for `forward`
   * @param addend the same shape and dtype; or float16 or bfloat16 with a float32 residual
   * @param dropout probability of an element of `addend` to be zeroed
   * @internal
   */
  forwardOfSum(residual: Tensor, addend: Tensor, dropout: number): [sum: Tensor, normed: Tensor] {
    checkFeatures('RMSNorm', 'input', residual, this.features, this.weight);
    const { weight, eps } = this;
    return callTensors('torchformer::add_norm', addend, residual, weight, null, dropout, eps, {
      centred: false,
      results: currentResults(weight),
    }) as [Tensor, Tensor];
  }

  protected override extraDescription(): string {
    return `${this.features}, eps=${this.eps.toExponential()}`;
  }
}
