/**
 * A process of suite `serve`: the sentences, and a new model with a tokenizer if none is given.
 *
 * Arguments: data folder, target folder, and optionally a model or run folder.
 */
import { join } from 'node:path';
import {
  findSpecialIds,
  loadModel,
  makeModel,
  manualSeed,
  saveModel,
  SeededRandom,
  Tokenizer,
  trainBpe,
} from 'torchformer';
import { multi30kLines } from '../corpora.js';
import { forbidIds } from '../decode/forbiddenIds.js';
import { describeModel, trainSizes } from '../sizes.js';
import type { PreparedServing } from './serveJob.js';

const [data, target, given] = process.argv.slice(2) as [string, string, string | undefined];
/** Sentences for a new model. */
const untrainedCount = 256;

const folder = given ?? join(target, 'served');
if (given === undefined) await saveRandomModel();
const { model, tokenizer, config } = await loadModel(folder);
if (tokenizer === null) throw new Error(`${folder}: the model must have a tokenizer`);
const { vocabSize, maxLen } = config.model;
const longest = maxLen - 2;
model.dispose();

const lines = (await multi30kLines(data, 'test_2016_flickr', 'de')).map((line) => line.trim());
const lengths = (await tokenizer.encodeBatch(lines)).map((ids) => ids.length);
const byLength = lines
  .map((line, index) => ({ line, length: lengths[index]! }))
  .filter(({ length }) => length > 0 && length <= longest)
  .sort((a, b) => a.length - b.length);
if (byLength.length === 0) throw new Error(`no sentence fits into ${maxLen} positions`);
const sentences = byLength.map(({ line }) => line);
// A tenth of the sentences are shorter.
const lone = sentences[Math.floor(sentences.length / 10)]!;
// Neighbours of a sorted list would be decoded together, which real requests are not.
new SeededRandom(1).shuffle(sentences);
// Targets that never end take several times as long.
if (given === undefined) sentences.splice(untrainedCount);

const size = describeModel({
  ...config.model,
  vocabSize: typeof vocabSize === 'number' ? vocabSize : vocabSize.tgt,
});
const prepared: PreparedServing = {
  folder,
  description: `${size}; ${given === undefined ? 'random weights, which never end a target' : 'trained'}`,
  sentences,
  lone,
};
console.log(JSON.stringify(prepared));

/** Saves a model of size small that never ends a target, so that its length is that of the default limit. */
async function saveRandomModel(): Promise<void> {
  const texts = [
    ...(await multi30kLines(data, 'train', 'de')),
    ...(await multi30kLines(data, 'train', 'en')),
  ];
  const { vocabSize: wanted, ...widths } = trainSizes.small.model;
  const ownTokenizer = Tokenizer.fromJson(await trainBpe(texts, { vocabSize: wanted }));
  const { pad, bos, eos } = findSpecialIds(ownTokenizer);
  manualSeed(1);
  const random = makeModel(ownTokenizer.vocabSize, widths);
  forbidIds(random, [pad, bos, eos]);
  const specialIds = { pad, bos, eos };
  await saveModel(folder, random, { tokenizer: ownTokenizer, specialIds });
  random.dispose();
}
