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

/** Rows of the table of positions. */
const longest = 200;

const folders = { multi30k: 'multi30k-de-en', tatoeba: 'tatoeba-en-zh' } as const;

/** @throws Error that names the file when the corpus or the tokenizer is missing */
export async function makeBatches(
  size: TrainSize,
  data: string,
  count: number,
): Promise<BatchFile> {
  const folder = join(data, folders[size.corpus]);
  await access(folder).catch(() => {
    throw new Error(
      `the corpus ${folder} is not there; --data or TORCHFORMER_BENCH_DATA names the folder with ` +
        Object.values(folders).join(' and '),
    );
  });
  const corpus = size.corpus === 'multi30k' ? multi30k : tatoeba;
  const { bos, eos, pairs } = await corpus(folder, size.model.vocabSize);
  const needed = count * size.batchSize;
  if (pairs.length < needed) {
    throw new Error(`${size.corpus} has ${pairs.length} usable pairs, ${needed} are needed`);
  }
  // The files are sorted, one by length; a training shuffles them.
  new SeededRandom(1).shuffle(pairs);
  const batches = Array.from({ length: count }, (_, index) =>
    pairs.slice(index * size.batchSize, (index + 1) * size.batchSize),
  );
  return { bos, eos, batches };
}

interface EncodedCorpus {
  bos: number;
  eos: number;
  pairs: IdPair[];
}

/** German to English, with a byte-level BPE vocabulary of its own training texts. */
async function multi30k(folder: string, vocabSize: number): Promise<EncodedCorpus> {
  const lines = async (language: string): Promise<string[]> => {
    const file = join(folder, `train.${language}.gz`);
    const bytes = await promisify(gunzip)(await readFile(file));
    return bytes.toString('utf8').trimEnd().split('\n');
  };
  const [sources, targets] = await Promise.all([lines('de'), lines('en')]);
  const texts: TextPair[] = sources.map((src, row) => ({ src, tgt: targets[row] ?? '' }));
  const tokenizer = Tokenizer.fromJson(await trainBpe([...sources, ...targets], { vocabSize }));
  if (tokenizer.vocabSize !== vocabSize) {
    throw new Error(`the BPE vocabulary has ${tokenizer.vocabSize} ids, not ${vocabSize}`);
  }
  const specialIds = findSpecialIds(tokenizer);
  const { pairs } = await encodePairs(texts, { tokenizer, specialIds, maxLength: longest });
  return {
    bos: specialIds.bos,
    eos: specialIds.eos,
    pairs: pairs.map(({ src, tgt }) => ({ src, tgt })),
  };
}

/**
 * English to Chinese with Qwen's vocabulary at the seed's exact size V. Its special ids lie outside
 * a table of V, and id 0 is a word; so id 0 and those from V - 2 on are dropped, and V - 2 and V - 1
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
  return { bos, eos, pairs };
}
