import { checkOptions } from '../../runtime/arguments.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Linear } from '../layers/linear.js';
import type { LinearOptions } from '../layers/linear.js';
import { Module } from '../module/module.js';
import { rememberRegistered } from '../module/registration.js';

/** From the decoder's vectors to log-probabilities of the next token (paper, section 3.4). */
export class Generator extends Module {
  static override readonly takesPackedRows: boolean = true;

  /**
   * From `[…, dModel]` to scores `[…, vocabSize]`; its weight may be an embedding's (option `tie`).
   */
  proj: Linear;

  /**
   * @param dModel size of the decoder's vectors
   * @param vocabSize number of ids of the target, added tokens of the tokenizer included
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
   * @throws RangeError for another last dimension, TypeError for another dtype or device
   */
  logits(input: Tensor): Tensor {
    return this.proj.forward(input);
  }

  /**
   * @param input `[…, dModel]`
   * @returns log-probabilities `[…, vocabSize]`
   * @throws RangeError for another last dimension, TypeError for another dtype or device
   */
  override forward(input: Tensor): Tensor {
    return tidy(() => this.logits(input).logSoftmax(-1));
  }
}
