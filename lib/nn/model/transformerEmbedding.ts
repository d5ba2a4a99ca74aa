import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Embedding } from '../layers/embedding.js';
import { Module } from '../module/module.js';
import { rememberRegistered } from '../module/registration.js';

/**
 * Token embeddings scaled by √dModel (paper, section 3.4; seed 001). The table is initialized from
 * normal(0, 1), like an Embedding; `makeModel` initializes it with Xavier uniform values.
 */
export class TransformerEmbedding extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** The table of vectors, `[vocabSize, dModel]`, before scaling by √dModel. */
  embedding: Embedding;
  /** Size of the vectors. */
  readonly dModel: number;

  /**
   * @param dModel size of the vectors
   * @param vocabSize number of ids, including the tokenizer's added tokens
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
   * @throws RangeError if an id is outside the vocabulary
   */
  override forward(ids: Tensor): Tensor {
    return tidy(() => this.embedding.forward(ids).mul(Math.sqrt(this.dModel)));
  }
}
