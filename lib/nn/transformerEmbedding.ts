import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { Embedding } from './embedding.js';
import { Module } from './module.js';

/** Token vectors times √dModel (paper, section 3.4). */
export class TransformerEmbedding extends Module {
  embedding: Embedding;
  readonly dModel: number;

  /**
   * @param dModel size of the vectors
   * @param vocabSize number of ids, added tokens of the tokenizer included
   */
  constructor(dModel: number, vocabSize: number) {
    super();
    this.embedding = new Embedding(vocabSize, dModel);
    this.dModel = dModel;
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
