/** A project of ES modules. Compiled by packageTypes.test.ts as a user's file, never run. */
import * as tf from 'torchformer';
import { createServer, type ServeOptions, type TranslationServer } from 'torchformer/serve';
import { makeModel, Module, seed002, type Batches, type Tensor } from 'torchformer';

export function double(x: Tensor): Tensor {
  return x.mul(2);
}

export class Twice extends Module {
  inner = new tf.Linear(2, 2);
  override forward(x: Tensor): Tensor {
    return this.inner.forward(this.inner.forward(x));
  }
}

export const sizes: tf.ModelOptions = { N: 1, norm: seed002.norm };
export const model: tf.Transformer = makeModel(9, sizes);
export const served: ServeOptions = { models: { 'de-en': 'runs/a' }, beam: 4 };
export const server: Promise<TranslationServer> = createServer(served);
export const options: seed002.MultiHeadOptions = { h: 4 };
export type Made = Batches;
// @ts-expect-error there is no such option
makeModel(9, { layers: 6 });
// @ts-expect-error there is no such export
void tf.layers;
