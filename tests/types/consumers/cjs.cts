/** A CommonJS project. Compiled by packageTypes.test.ts as a user's file, never run. */
import tf = require('torchformer');
import serving = require('torchformer/serve');
import { makeModel, Module, seed002, type Batches, type Tensor } from 'torchformer';
import type { double } from './esm.mjs' with { 'resolution-mode': 'import' };

class Twice extends Module {
  inner = new tf.Linear(2, 2);
  override forward(x: Tensor): Tensor {
    return this.inner.forward(this.inner.forward(x));
  }
}

const sizes: tf.ModelOptions = { N: 1, norm: seed002.norm };
const model: tf.Transformer = makeModel(9, sizes);
const options: seed002.MultiHeadOptions = { h: 4 };
const server: Promise<serving.TranslationServer> = serving.createServer({ models: 'models' });
type Made = Batches;
// @ts-expect-error there is no such option
makeModel(9, { layers: 6 });
// @ts-expect-error there is no such export
void tf.layers;

// One type, whichever way it came: what an ES module of the same project takes and gives.
declare const fromEsm: typeof double;
const doubled: Tensor = fromEsm(tf.ones([2]));
const list: tf.ModuleList<tf.Linear> = new tf.ModuleList([new tf.Linear(1, 1)]);

export = { Twice, model, options, doubled, list } satisfies Record<string, unknown> & {
  made?: Made;
};
