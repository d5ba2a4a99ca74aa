import { checkOptions } from '../runtime/options.js';
import { callTensor } from '../tensor/dispatch.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkFeatures } from './check.js';
import { Dropout } from './dropout.js';
import { Linear } from './linear.js';
import { Module } from './module.js';

export interface PositionwiseFeedForwardOptions {
  /** between ReLU and the second layer; default 0.1 */
  dropout?: number;
}

/** w2(dropout(relu(w1(x)))) at each position (paper, section 3.3): one native op. */
export class PositionwiseFeedForward extends Module {
  static override readonly stateNames = { w1: 'w_1', w2: 'w_2' };

  /** `[dModel]` to `[dFf]` */
  w1: Linear;
  /** `[dFf]` to `[dModel]` */
  w2: Linear;
  dropout: Dropout;

  /** @throws RangeError for sizes that are no positive integers, or dropout outside 0 to 1 */
  constructor(dModel: number, dFf: number, options: PositionwiseFeedForwardOptions = {}) {
    super();
    checkOptions('PositionwiseFeedForward', options, ['dropout']);
    this.w1 = new Linear(dModel, dFf);
    this.w2 = new Linear(dFf, dModel);
    this.dropout = new Dropout(options.dropout ?? 0.1);
  }

  /**
   * @param input `[…, dModel]`
   * @returns the same shape
   * @throws RangeError for another last dimension, TypeError for another dtype or device
   */
  override forward(input: Tensor): Tensor {
    const { w1, w2 } = this;
    checkFeatures('PositionwiseFeedForward', 'input', input, w1.inFeatures, w1.weight);
    return callTensor(
      'torchformer::feed_forward',
      input,
      w1.weight,
      w1.bias,
      w2.weight,
      w2.bias,
      this.dropout.activeProbability,
    );
  }
}
