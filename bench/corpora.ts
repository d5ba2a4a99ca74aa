/** The sentence pairs of suite `train` as token ids. */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import {
  encodePairs,
  findSpecialIds,
  readPairs,
  SeededRandom,
  Tokenizer,
  trainBpe,
  type TextPair,
} from 'torchformer';
import type { TrainSize } from './sizes.js';
import { tokenizerFile } from './tokenizerFile.js';
import type { BatchFile, IdPair } from './trainJob.js';

/** Rows of the position table. */
const longest = 200;

const folders = { multi30k: 'multi30k-de-en', tatoeba: 'tatoeba-en-zh' } as const;

/** @throws Error that names the file if the corpus or the tokenizer is missing */
export async function makeBatches(
  size: TrainSize,
  data: string,
  count: number,
): Promise<BatchFile> {
  const { vocabSize } = size.model;
  const { bos, eos, pairs, ids } = await encodeCorpus(size.corpus, vocabSize, data);
  if (ids !== vocabSize) throw new Error(`the vocabulary has ${ids} ids, not ${vocabSize}`);
  const needed = count * size.batchSize;
  if (pairs.length < needed) {
    throw new Error(`${size.corpus} has ${pairs.length} usable pairs, ${needed} are needed`);
  }
  const batches = Array.from({ length: count }, (_, index) =>
    pairs.slice(index * size.batchSize, (index + 1) * size.batchSize),
  );
  return { bos, eos, batches };
}

/** A corpus as ids. */
export interface EncodedCorpus {
  readonly bos: number;
  readonly eos: number;
  readonly pairs: readonly IdPair[];
  /** Held-out pairs in the order of their files; empty if the corpus has none. */
  readonly validation: readonly IdPair[];
  /** Size of the vocabulary; smaller than requested if the texts do not have enough. */
  readonly ids: number;
}

/**
 * All pairs of a corpus in a random order that is the same in every call. The files are sorted, one of
 * them by length, and training shuffles them.
 *
 * @throws Error that names the file if the corpus or the tokenizer is missing
 */
export async function encodeCorpus(
  name: TrainSize['corpus'],
  vocabSize: number,
  data: string,
): Promise<EncodedCorpus> {
  const folder = await corpusFolder(name, data);
  const corpus = await (name === 'multi30k' ? multi30k : tatoeba)(folder, vocabSize);
  const pairs = [...corpus.pairs];
  new SeededRandom(1).shuffle(pairs);
  return { ...corpus, pairs };
}

/** German to English, with a byte-level BPE vocabulary trained on its training texts. */
async function multi30k(folder: string, vocabSize: number): Promise<EncodedCorpus> {
  const training = await multi30kTexts(folder, 'train');
  const texts = [...training.map(({ src }) => src), ...training.map(({ tgt }) => tgt)];
  const tokenizer = Tokenizer.fromJson(await trainBpe(texts, { vocabSize }));
  const specialIds = findSpecialIds(tokenizer);
  const encoded = async (pairs: TextPair[]): Promise<IdPair[]> => {
    const result = await encodePairs(pairs, { tokenizer, specialIds, maxLength: longest });
    return result.pairs.map(({ src, tgt }) => ({ src, tgt }));
  };
  return {
    bos: specialIds.bos,
    eos: specialIds.eos,
    pairs: await encoded(training),
    validation: await encoded(await multi30kTexts(folder, 'val')),
    ids: tokenizer.vocabSize,
  };
}

/**
 * The lines of a file of Multi30k, such as `val.de.gz`.
 *
 * @throws Error that names the folder if the corpus is missing
 */
export async function multi30kLines(
  data: string,
  part: string,
  language: 'de' | 'en',
): Promise<string[]> {
  return linesOf(await corpusFolder('multi30k', data), part, language);
}

async function linesOf(folder: string, part: string, language: string): Promise<string[]> {
  const bytes = await promisify(gunzip)(await readFile(join(folder, `${part}.${language}.gz`)));
  return bytes.toString('utf8').trimEnd().split('\n');
}

async function multi30kTexts(folder: string, part: 'train' | 'val'): Promise<TextPair[]> {
  const [sources, targets] = await Promise.all([
    linesOf(folder, part, 'de'),
    linesOf(folder, part, 'en'),
  ]);
  return sources.map((src, row) => ({ src, tgt: targets[row] ?? '' }));
}

async function corpusFolder(name: TrainSize['corpus'], data: string): Promise<string> {
  const folder = join(data, folders[name]);
  await access(folder).catch(() => {
    throw new Error(
      `the corpus ${folder} is missing; set --data or TORCHFORMER_BENCH_DATA to the folder with ` +
        Object.values(folders).join(' and '),
    );
  });
  return folder;
}

/**
 * English to Chinese with Qwen's vocabulary at the seed's exact size V. Its special ids are outside a
 * table of size V, and id 0 is a word; so id 0 and the ids from V - 2 on are dropped, and V - 2 and V - 1
 * are bos and eos.
 */
async function tatoeba(folder: string, vocabSize: number): Promise<EncodedCorpus> {
  const tokenizer = await Tokenizer.fromFile(await tokenizerFile());
  const file = join(folder, 'train.csv');
  const { pairs: texts } = await readPairs(file, { src: 'en', tgt: 'zh' });
  const bos = vocabSize - 2;
  const eos = vocabSize - 1;
  const framed = async (texts: readonly string[]): Promise<number[][]> =>
    (await tokenizer.encodeBatch(texts)).map((ids) => [
      bos,
      ...ids.filter((id) => id > 0 && id < bos),
      eos,
    ]);
  const src = await framed(texts.map((pair) => pair.src));
  const tgt = await framed(texts.map((pair) => pair.tgt));
  const pairs = src
    .map((ids, row): IdPair => ({ src: ids, tgt: tgt[row]! }))
    .filter((pair) => pair.src.length <= longest && pair.tgt.length <= longest);
  return { bos, eos, pairs, validation: [], ids: vocabSize };
}
