/** A small translation task: English number words to digits. */
import {
  batches,
  findSpecialIds,
  makeModel,
  manualSeed,
  Tokenizer,
  trainCharacters,
  TranslationDataset,
  type ModelOptions,
  type SpecialIds,
  type Transformer,
  type VocabSize,
} from 'torchformer';

const ones = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];

/** 50 different pairs: twenty → 20 … sixty nine → 69. */
export const fiftyPairs = Array.from({ length: 50 }, (_, index) => {
  const digit = index % 10;
  const words = tens[Math.floor(index / 10)] as string;
  return { src: digit === 0 ? words : `${words} ${ones[digit]}`, tgt: String(20 + index) };
});

/** The other way round: targets of different lengths, so that their batches have padding. */
export const raggedPairs = fiftyPairs.map(({ src, tgt }) => ({ src: tgt, tgt: src }));

export interface TinyTask {
  readonly tokenizer: Tokenizer;
  readonly specialIds: SpecialIds;
  readonly dataset: TranslationDataset;
}

export async function tinyTask(pairs = fiftyPairs): Promise<TinyTask> {
  const texts = fiftyPairs.flatMap(({ src, tgt }) => [src, tgt]);
  const tokenizer = Tokenizer.fromJson(await trainCharacters(texts));
  const { pad, bos, eos } = findSpecialIds(tokenizer);
  const specialIds = { pad, bos, eos };
  const dataset = await TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });
  return { tokenizer, specialIds, dataset };
}

/** One layer, no dropout, the same weights each time. */
export function tinyModel(vocabSize: VocabSize, options: ModelOptions = {}): Transformer {
  manualSeed(1);
  return makeModel(vocabSize, {
    N: 1,
    dModel: 32,
    dFf: 64,
    h: 4,
    dropout: 0,
    attentionDropout: 0,
    maxLen: 32,
    ...options,
  });
}

/** Batches of the first pairs of a task, in order. */
export function firstBatches(task: TinyTask, count: number, batchSize: number) {
  const { specialIds, vocabSize, pairs } = task.dataset;
  const part = new TranslationDataset(pairs.slice(0, count), { specialIds, vocabSize });
  return batches(part, { batchSize });
}

/** All weights as numbers, to compare models. */
export function weightsOf(model: Transformer): Record<string, ArrayLike<number | bigint>> {
  return Object.fromEntries(model.namedParameters().map(([name, weight]) => [name, weight.data()]));
}

/** The largest difference of any weight of two models. */
export function largestDifference(
  a: Record<string, ArrayLike<number | bigint>>,
  b: Record<string, ArrayLike<number | bigint>>,
): number {
  let largest = 0;
  for (const [name, values] of Object.entries(a)) {
    const others = b[name] as ArrayLike<number | bigint>;
    for (let index = 0; index < values.length; index++) {
      largest = Math.max(largest, Math.abs(Number(values[index]) - Number(others[index])));
    }
  }
  return largest;
}
