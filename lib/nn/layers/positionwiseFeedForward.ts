import { checkBoolean, checkChoice, checkOptions, orDefault } from '../../runtime/arguments.js';
import { currentProducts } from '../../tensor/autocast.js';
import { callTensor } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { Dropout } from './dropout.js';
import { Linear } from './linear.js';
import { Module } from '../module/module.js';
import { rememberRegistered } from '../module/registration.js';

/** Activation between the two layers, see {@link PositionwiseFeedForward}. */
export type Activation = 'relu' | 'gelu' | 'swiglu';

/** Options of {@link PositionwiseFeedForward}. */
export interface PositionwiseFeedForwardOptions {
  /** dropout between the activation and the last layer; default 0.1 (seed 001) */
  dropout?: number;
  /** default `'relu'` (paper and seeds) */
  activation?: Activation;
  /** biases in all linear layers; default true */
  bias?: boolean;
}

/**
 * Two linear layers, applied to each position (paper, section 3.3), in one native op. Layers or dropout
 * of other classes, or with hooks, are called one after the other instead:
 *
 * - `'relu'`: w2(dropout(relu(w1(x))));
 * - `'gelu'`: w2(dropout(gelu(w1(x)))), with the exact gelu(x) = x · Φ(x) (Hendrycks and Gimpel
 *   2016);
 * - `'swiglu'`: w2(dropout(silu(w1(x)) · w3(x))), with silu(x) = x · sigmoid(x) (Shazeer 2020); has
 *   50% more parameters at the same dFf.
 */
export class PositionwiseFeedForward extends Module {
  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames = { w1: 'w_1', w2: 'w_2', w3: 'w_3' };

  /** `[dModel]` to `[dFf]` */
  w1: Linear;
  /** `[dFf]` to `[dModel]` */
  w2: Linear;
  /** `[dModel]` to `[dFf]`; null unless the activation is `'swiglu'` */
  w3: Linear | null;
  /** Applied to the output of the activation. */
  dropout: Dropout;
  /** Activation between the layers. */
  readonly activation: Activation;

  /**
   * @param dModel size of the input and output vectors
   * @param dFf size between the layers; 4 · dModel in the paper
   * @throws RangeError if a size is not a positive integer or dropout is not in [0, 1]; TypeError if
   *   the activation is unknown
   */
  constructor(dModel: number, dFf: number, options: PositionwiseFeedForwardOptions = {}) {
    super();
    const owner = 'PositionwiseFeedForward';
    checkOptions(owner, options, ['dropout', 'activation', 'bias']);
    const bias = checkBoolean(owner, 'bias', orDefault(options.bias, true));
    this.activation = checkChoice(
      owner,
      'activation',
      orDefault(options.activation, 'relu'),
      activations,
    );
    this.w1 = new Linear(dModel, dFf, { bias });
    this.w2 = new Linear(dFf, dModel, { bias });
    this.w3 = this.activation === 'swiglu' ? new Linear(dModel, dFf, { bias }) : null;
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    rememberRegistered(this);
  }

  /**
   * @param input `[…, dModel]`
   * @returns the same shape
   * @throws RangeError if the last dimension is wrong; TypeError or TorchError ERR_DEVICE if dtype or
   *   device differ from the weights'
   */
  override forward(input: Tensor): Tensor {
    const { w1, w2, w3, activation } = this;
    checkFeatures('PositionwiseFeedForward', 'input', input, w1.inFeatures, w1.weight);
    if (!this.isPlain()) return this.forwardOfParts(input);
    return callTensor(
      'torchformer::feed_forward',
      input,
      w1.weight,
      w1.bias,
      w2.weight,
      w2.bias,
      this.dropout.activeProbability,
      {
        products: currentProducts(w1.weight),
        ...(activation === 'relu' ? {} : { activation, w_3: w3?.weight, b_3: w3?.bias }),
      },
    );
  }

  /** Whether the op computes what the parts would: it takes their weights, and does not call them. */
  private isPlain(): boolean {
    const { w1, w2, w3, dropout } = this;
    const isPlainLinear = (linear: Linear | null) =>
      linear === null || linear.forward === Linear.prototype.forward;
    return [w1, w2, w3].every(isPlainLinear) && dropout.forward === Dropout.prototype.forward;
  }

  private forwardOfParts(input: Tensor): Tensor {
    return tidy(() => {
      const inner = this.w1.forward(input);
      const active = activate[this.activation](inner);
      const hidden = this.w3 === null ? active : active.mul(this.w3.forward(input));
      return this.w2.forward(this.dropout.forward(hidden));
    });
  }

  protected override extraDescription(): string {
    return this.activation === 'relu' ? '' : `activation='${this.activation}'`;
  }
}

const activate: Readonly<Record<Activation, (input: Tensor) => Tensor>> = {
  relu: (input) => input.relu(),
  gelu: (input) => input.gelu(),
  swiglu: (input) => input.silu(),
};

/** @internal */
export const activations: readonly Activation[] = ['relu', 'gelu', 'swiglu'];
