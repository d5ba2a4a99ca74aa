import { checkBoolean, checkInteger, checkOptions, orDefault } from '../../runtime/arguments.js';
import { empty } from '../../tensor/create.js';
import { currentProducts } from '../../tensor/autocast.js';
import { callTensor } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { kaimingUniform_, uniform_ } from '../module/init.js';
import { Module } from '../module/module.js';
import { Parameter } from '../module/parameter.js';
import { rememberRegistered } from '../module/registration.js';

/** Options of {@link Linear}. */
export interface LinearOptions {
  /** add a learned bias; default true */
  bias?: boolean;
}

/** `x · weightᵀ + bias`, like `torch.nn.Linear`. */
export class Linear extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** `[outFeatures, inFeatures]` */
  weight: Parameter;
  /** `[outFeatures]`; null if `bias` is false */
  bias: Parameter | null;
  /** Last dimension of the input. */
  readonly inFeatures: number;
  /** Last dimension of the output. */
  readonly outFeatures: number;

  /**
   * Weight and bias are initialized uniformly in ±1/√inFeatures (PyTorch's default).
   * @throws RangeError unless both sizes are positive integers
   */
  constructor(inFeatures: number, outFeatures: number, options: LinearOptions = {}) {
    super();
    checkOptions('Linear', options, ['bias']);
    const bias = checkBoolean('Linear', 'bias', orDefault(options.bias, true));
    this.inFeatures = checkInteger('Linear', 'inFeatures', inFeatures, 1);
    this.outFeatures = checkInteger('Linear', 'outFeatures', outFeatures, 1);
    this.weight = tidy(() => new Parameter(empty([outFeatures, inFeatures])));
    kaimingUniform_(this.weight, Math.sqrt(5));
    this.bias = null;
    if (bias) {
      const bound = 1 / Math.sqrt(inFeatures);
      this.bias = uniform_(
        tidy(() => new Parameter(empty([outFeatures]))),
        -bound,
        bound,
      );
    }
    rememberRegistered(this);
  }

  /**
   * @param input `[…, inFeatures]`
   * @returns `[…, outFeatures]`
   * @throws RangeError if the last dimension is wrong; TypeError or TorchError ERR_DEVICE if dtype or
   *   device differ from the weights'
   */
  override forward(input: Tensor): Tensor {
    checkFeatures('Linear', 'input', input, this.inFeatures, this.weight);
    return callTensor('torchformer::linear', input, this.weight, this.bias, {
      products: currentProducts(this.weight),
    });
  }

  protected override extraDescription(): string {
    return (
      `in_features=${this.inFeatures}, out_features=${this.outFeatures}, ` +
      `bias=${this.bias === null ? 'False' : 'True'}`
    );
  }
}
