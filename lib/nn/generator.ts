import { checkOptions } from '../runtime/options.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { Linear } from './linear.js';
import type { LinearOptions } from './linear.js';
import { Module } from './module.js';

/** From the decoder's vectors to log-probabilities of the next token. */
export class Generator extends Module {
  proj: Linear;

  /** @param options `bias`: default true */
  constructor(dModel: number, vocabSize: number, options: LinearOptions = {}) {
    super();
    checkOptions('Generator', options, ['bias']);
    this.proj = new Linear(dModel, vocabSize, options);
  }

  /**
   * Scores before the softmax, for a loss that computes the softmax itself.
   *
   * @param input `[…, dModel]`
   * @returns `[…, vocabSize]`
   */
  logits(input: Tensor): Tensor {
    return this.proj.forward(input);
  }

  /**
   * @param input `[…, dModel]`
   * @returns log-probabilities `[…, vocabSize]`
   */
  override forward(input: Tensor): Tensor {
    return tidy(() => this.logits(input).logSoftmax(-1));
  }
}
