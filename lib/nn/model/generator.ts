import { checkOptions } from '../../runtime/arguments.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Linear } from '../layers/linear.js';
import type { LinearOptions } from '../layers/linear.js';
import { Module } from '../module/module.js';
import { rememberRegistered } from '../module/registration.js';

/** Maps the decoder's vectors to log-probabilities of the next token (paper, section 3.4). */
export class Generator extends Module {
  static override readonly takesPackedRows: boolean = true;

  /**
   * Maps `[…, dModel]` to scores `[…, vocabSize]`; its weight may be shared with an embedding (option
   * `tie`).
   */
  proj: Linear;

  /**
   * @param dModel size of the decoder's vectors
   * @param vocabSize number of target ids, including the tokenizer's added tokens
   * @param options `bias`: default true
   * @throws RangeError, TypeError unless both sizes are positive integers
   */
  constructor(dModel: number, vocabSize: number, options: LinearOptions = {}) {
    super();
    checkOptions('Generator', options, ['bias']);
    this.proj = new Linear(dModel, vocabSize, options);
    rememberRegistered(this);
  }

  /**
   * Scores before the softmax, for a loss that computes the softmax itself.
   *
   * @param input `[…, dModel]`
   * @returns `[…, vocabSize]`
   * @throws RangeError if the last dimension is wrong; TypeError or TorchError ERR_DEVICE if dtype or
   *   device differ from the weights'
   */
  logits(input: Tensor): Tensor {
    return this.proj.forward(input);
  }

  /**
   * @param input `[…, dModel]`
   * @returns log-probabilities `[…, vocabSize]`
   * @throws RangeError if the last dimension is wrong; TypeError or TorchError ERR_DEVICE if dtype or
   *   device differ from the weights'
   */
  override forward(input: Tensor): Tensor {
    return tidy(() => this.logits(input).logSoftmax(-1));
  }
}
