/**
 * A trained model gives each of 1,000 real sentences the same translation in every batch. Needs the run
 * folder of a model trained on Multi30k from German to English (bench/README.md says how), and the folder
 * of that corpus:
 *
 *     TORCHFORMER_TRAINED_RUN=run TORCHFORMER_MULTI30K=multi30k-de-en npm test -- tests/e2e/batchInvariance
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  loadModel,
  getNumThreads,
  SequenceGenerator,
  setNumThreads,
  type GeneratedSequence,
  type Transformer,
} from 'torchformer';

const run = process.env['TORCHFORMER_TRAINED_RUN'];
const corpus = process.env['TORCHFORMER_MULTI30K'];

/** Numbers of sources at a time, their order, and threads. */
const ways = [1, 7, 32, 64].flatMap((batchSize) => [
  { batchSize, order: 'shuffled', threads: 1 },
  { batchSize, order: 'sorted', threads: 2 },
]);

/** Indices of the sources in the order in which they are decoded. */
function orderOf(name: string, sources: readonly (readonly number[])[]): number[] {
  const indices = sources.map((_, index) => index);
  if (name === 'sorted') {
    const length = (index: number) => (sources[index] as readonly number[]).length;
    return indices.sort((a, b) => length(a) - length(b));
  }
  // 1,000 and 387 have no common factor.
  return indices.map((index) => (index * 387 + 11) % indices.length);
}

describe.skipIf(run === undefined || corpus === undefined)('1,000 sentences of Multi30k', () => {
  const threads = getNumThreads();
  const sources: number[][] = [];
  let model: Transformer;
  let specialIds: { pad: number; bos: number; eos: number };
  beforeAll(async () => {
    const loaded = await loadModel(run as string);
    const { bos, eos, pad } = loaded.config.specialIds!;
    specialIds = { bos, eos, pad };
    model = loaded.model.eval();
    const file = join(corpus as string, 'test_2016_flickr.de.gz');
    const texts = gunzipSync(readFileSync(file)).toString('utf8').trim().split('\n');
    expect(texts).toHaveLength(1000);
    for (const ids of await loaded.tokenizer!.encodeBatch(texts)) sources.push([bos, ...ids, eos]);
  });
  afterAll(() => {
    setNumThreads(threads);
  });

  test.each([
    ['float32', 'greedy', 1],
    ['float32', 'beam 4', 4],
    ['int8', 'greedy', 1],
    ['int8', 'beam 4', 4],
  ] as const)(
    'have the same tokens and scores alone and in any batch, order and number of threads: %s, %s',
    async (precision, _, beam) => {
      const generator = new SequenceGenerator(model, { specialIds, precision });
      const decode = async (batchSize: number, order: readonly number[]) => {
        const options = { beam, batchSize, scores: true };
        const given = order.map((index) => sources[index] as number[]);
        const found = await generator.generate(given, options);
        const results: GeneratedSequence[][] = [];
        order.forEach((index, place) => (results[index] = found[place] as GeneratedSequence[]));
        return results;
      };
      const expected = await decode(
        32,
        sources.map((_source, index) => index),
      );
      // They are translations: most end, and hardly any two are the same.
      expect(expected.filter(([best]) => best?.ended).length).toBeGreaterThan(990);
      expect(new Set(expected.map(([best]) => best?.ids.join())).size).toBeGreaterThan(900);
      for (const { batchSize, order, threads: count } of ways) {
        setNumThreads(count);
        const found = await decode(batchSize, orderOf(order, sources));
        const different = found.filter(
          (targets, index) => JSON.stringify(targets) !== JSON.stringify(expected[index]),
        );
        expect(different, `batch ${batchSize}, ${order}, ${count} threads`).toEqual([]);
      }
    },
    3_600_000,
  );
});
