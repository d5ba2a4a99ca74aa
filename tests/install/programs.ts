/** The programs that consumers run. */

/** Trains a translator and translates with it: about all of the package, in some ten lines. */
export const training = `
import * as tf from 'torchformer';
tf.manualSeed(1);
const pairs = [{ src: 'good morning', tgt: '早上好' }, { src: 'good night', tgt: '晚安' }];
const texts = pairs.flatMap(({ src, tgt }) => [src, tgt]);
const tokenizer = tf.Tokenizer.fromJson(await tf.trainBpe(texts, { vocabSize: 300 }));
const specialIds = tf.findSpecialIds(tokenizer);
const dataset = await tf.TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });
const model = tf.makeModel(tokenizer.vocabSize, { N: 1, dModel: 64, dFf: 128, h: 4, dropout: 0 });
const trainer = new tf.Trainer(model, { specialIds, tokenizer, out: 'run', overwrite: true });
const load = () => tf.batches(dataset, { shuffle: true });
await trainer.fit(load, { validation: load, epochs: 80 });
const translator = await tf.Translator.load('run');
console.log(JSON.stringify(await translator.translate(['good night', 'good morning'])));
`;

/** What {@link training} prints last. */
export const trained = '["晚安","早上好"]';

/** One addition, for questions of loading alone. */
export const addition = `
import { tensor } from 'torchformer';
console.log(JSON.stringify(tensor([1, 2]).add(1).toArray()));
`;

/** The same for \`require\`. */
export const required = `
const { tensor } = require('torchformer');
console.log(JSON.stringify(tensor([1, 2]).add(1).toArray()));
`;

/** The same for bundlers, with the other native package beside it. */
export const bundled = `
import { Tokenizer, tensor, trainBpe } from 'torchformer';
async function main() {
  const tokenizer = Tokenizer.fromJson(await trainBpe(['good night'], { vocabSize: 300 }));
  if ((await tokenizer.encode('good')).length === 0) throw new Error('no ids');
  console.log(JSON.stringify(tensor([1, 2]).add(1).toArray()));
}
void main();
`;

/** What all three print. */
export const added = '[2,3]';
