import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Embedding } from '../layers/embedding.js';
import { Module } from '../module/module.js';
import { rememberRegistered } from '../module/registration.js';

/**
 * Token vectors times √dModel (paper, section 3.4; seed 001). The table starts as normal(0, 1), an
 * Embedding's; `makeModel` draws it xavier-uniform.
 */
export class TransformerEmbedding extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** The table of vectors, `[vocabSize, dModel]`, as it is before the factor √dModel. */
  embedding: Embedding;
  /** Size of the vectors. */
  readonly dModel: number;

  /**
   * @param dModel size of the vectors
   * @param vocabSize number of ids, added tokens of the tokenizer included
   * @throws RangeError, TypeError unless both are positive integers
   */
  constructor(dModel: number, vocabSize: number) {
    super();
    this.embedding = new Embedding(vocabSize, dModel);
    this.dModel = dModel;
    rememberRegistered(this);
  }

  /**
   * @param ids int64 or int32 `[B, S]`
   * @returns `[B, S, dModel]`
   * @throws RangeError naming an id outside the vocabulary
   */
  override forward(ids: Tensor): Tensor {
    return tidy(() => this.embedding.forward(ids).mul(Math.sqrt(this.dModel)));
  }
}
