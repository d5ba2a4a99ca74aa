/**
 * A process of suite `decode`: the sources and references of Multi30k for a trained model.
 *
 * Arguments: model or run folder, data folder, target folder.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { loadModel, type ModelConfig } from 'torchformer';
import type { PreparedDecoding } from './decodeJob.js';
import { writeForbidding } from './forbiddenIds.js';
import { ownPrecisions } from './searches.js';

/** The JSON line that it prints; sources are sorted by length, so that batches have little padding. */
export interface PreparedCorpus extends PreparedDecoding {
  /** JSON file of the references in the order of the sources. */
  readonly references: string;
}

const [folder, data, target] = process.argv.slice(2) as [string, string, string];
const { model, tokenizer, config } = await loadModel(folder);
const { specialIds } = config;
if (tokenizer === null || specialIds === null) {
  throw new Error(`${folder}: the model must have a tokenizer and special ids`);
}
const size = sizeOf(config.model);

const texts = await linesOf('de');
const references = await linesOf('en');
const encoded = await tokenizer.encodeBatch(texts);
const order = encoded.map((_, index) => index);
order.sort((a, b) => encoded[a]!.length - encoded[b]!.length || a - b);
const sources = order.map((index) => [specialIds.bos, ...encoded[index]!, specialIds.eos]);
const longest = sources.at(-1)!.length;
if (longest > config.model.maxLen) {
  throw new Error(`a source has ${longest} tokens, the model ${config.model.maxLen} positions`);
}
const weights = join(target, 'trained.decode.safetensors');
await writeForbidding(model, [specialIds.pad, specialIds.bos], weights);
const file = join(target, 'trained.references.json');
await writeFile(file, JSON.stringify(order.map((index) => references[index])));
const prepared: PreparedCorpus = {
  model: size,
  maxLen: config.model.maxLen,
  weights,
  specialIds,
  sources,
  ownPrecisions: ownPrecisions(model, specialIds),
  references: file,
};
console.log(JSON.stringify(prepared));

async function linesOf(language: 'de' | 'en'): Promise<string[]> {
  const file = join(data, 'multi30k-de-en', `test_2016_flickr.${language}.gz`);
  const bytes = await promisify(gunzip)(await readFile(file));
  return bytes.toString('utf8').trimEnd().split('\n');
}

/** @throws Error if the peers cannot compute a model with these settings */
function sizeOf(model: ModelConfig): PreparedDecoding['model'] {
  const { vocabSize, N, dModel, dFf, h, norm, order, finalNorm, positions, activation, bias } =
    model;
  const settings = { norm, order, finalNorm, positions, activation, bias };
  const expected = {
    norm: { kind: 'layer', std: 'population', eps: 1e-6, epsPlace: 'inside', names: 'a_2/b_2' },
    order: 'pre',
    finalNorm: true,
    positions: 'paired',
    activation: 'relu',
    bias: { attention: true, feedForward: true, generator: true },
  };
  if (typeof vocabSize !== 'number' || !isDeepStrictEqual(settings, expected)) {
    throw new Error(
      'the peers know models with the default settings and one vocabulary only, but this one has ' +
        JSON.stringify({ vocabSize, ...settings }),
    );
  }
  return { vocabSize, N, dModel, dFf, h };
}
