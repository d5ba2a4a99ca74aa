/**
 * A process of suite `train`: writes the pairs, the order of the batches and the initial weights that all
 * participants on length-bucketed batches use.
 *
 * Arguments: size, data folder, number of epochs, target folder.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SeededRandom } from 'torchformer';
import { encodeCorpus } from '../corpora.js';
import { trainSizes, type SizeName } from '../sizes.js';
import { writeWeights } from '../weights.js';
import type { BucketFile } from './bucketJob.js';
import { cutBuckets, targets } from './cutBuckets.js';

/** The JSON line that it prints. */
export interface PreparedBuckets {
  readonly weights: string;
  readonly pairs: string;
  readonly parameters: number;
  /** Number of training batches. */
  readonly batches: number;
  /** Training pairs, and their target tokens. */
  readonly pairCount: number;
  readonly targetTokens: number;
  /** Share of the padded positions, on both sides together, that are tokens. */
  readonly fill: number;
}

const [name, data, epochs, folder] = process.argv.slice(2) as [SizeName, string, string, string];
const { model, corpus, buckets } = trainSizes[name];
if (buckets === null) throw new Error(`size ${name} has no length-bucketed batches`);

const { bos, eos, pairs, validation, ids } = await encodeCorpus(corpus, model.vocabSize, data);
if (ids !== model.vocabSize) {
  throw new Error(`the vocabulary has ${ids} ids, not ${model.vocabSize}`);
}
const cut = cutBuckets(pairs, buckets.tokens);
const orders = Array.from({ length: Number(epochs) }, (_, epoch) => {
  const order = cut.map((_, index) => index);
  new SeededRandom(1, epoch).shuffle(order);
  return order;
});
const file: BucketFile = { bos, eos, training: pairs, validation, orders };
const pairsFile = join(folder, `${name}.pairs.json`);
await writeFile(pairsFile, JSON.stringify(file));

const weights = join(folder, `${name}.buckets.safetensors`);
const parameters = await writeWeights(model, weights);

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const targetTokens = sum(pairs.map(targets));
const sourceTokens = sum(pairs.map(({ src }) => src.length));
const positions = sum(
  cut.map(
    (batch) =>
      batch.length *
      (Math.max(...batch.map(targets)) + Math.max(...batch.map(({ src }) => src.length))),
  ),
);
const prepared: PreparedBuckets = {
  weights,
  pairs: pairsFile,
  parameters,
  batches: cut.length,
  pairCount: pairs.length,
  targetTokens,
  fill: (sourceTokens + targetTokens) / positions,
};
console.log(JSON.stringify(prepared));
