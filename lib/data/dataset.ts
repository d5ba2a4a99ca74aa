import { checkInteger, checkOptions, describe } from '../runtime/options.js';
import type { ByteSource } from './byteSource.js';
import { encodePairs, type EncodePairsOptions, type TextPair } from './encodePairs.js';
import { readPairs, readPairsOptionNames, type ReadPairsOptions } from './pairReader.js';
import { newReport, type DataReport } from './report.js';
import { checkSpecialIds, type SpecialIds } from './specialIds.js';

/** A sentence pair in token ids. */
export interface TokenPair {
  /** Source: bos, tokens, eos. */
  src: readonly number[];
  /** Target: bos, tokens, eos. */
  tgt: readonly number[];
  /** Number of the row it came from. */
  row: number;
}

export interface TranslationDatasetOptions {
  /** The ids of pad, bos and eos. */
  specialIds: SpecialIds;
  /** Ids must be below this. */
  vocabSize: number;
  /** What became of the rows. Default: all pairs kept. */
  report?: DataReport | undefined;
}

/** Sentence pairs in token ids, ready to be put in batches. */
export class TranslationDataset implements Iterable<TokenPair> {
  readonly pairs: readonly TokenPair[];
  readonly specialIds: SpecialIds;
  readonly vocabSize: number;
  /** What became of every row of the file. */
  readonly report: DataReport;

  /**
   * @throws TypeError, RangeError for special ids that do not fit, and for a pair with an id outside
   * the vocabulary or a target without a token to predict
   */
  constructor(pairs: readonly TokenPair[], options: TranslationDatasetOptions) {
    const owner = 'TranslationDataset';
    checkOptions(owner, options, ['specialIds', 'vocabSize', 'report']);
    const { specialIds, vocabSize } = options;
    checkInteger(owner, 'vocabSize', vocabSize, 1);
    checkSpecialIds(specialIds, vocabSize, owner);
    pairs.forEach((pair, index) => {
      checkSequence(`pairs[${index}].src`, pair.src, 1, vocabSize);
      checkSequence(`pairs[${index}].tgt`, pair.tgt, 2, vocabSize);
    });
    this.pairs = pairs;
    this.specialIds = specialIds;
    this.vocabSize = vocabSize;
    this.report = options.report ?? {
      ...newReport('the pairs'),
      rows: pairs.length,
      kept: pairs.length,
    };
  }

  /** Encodes texts; see {@link encodePairs} for what is left out. */
  static async fromPairs(
    pairs: readonly TextPair[],
    options: EncodePairsOptions,
  ): Promise<TranslationDataset> {
    const encoded = await encodePairs(pairs, options);
    const { specialIds, tokenizer } = options;
    const { report } = encoded;
    return new TranslationDataset(encoded.pairs, {
      specialIds,
      vocabSize: tokenizer.vocabSize,
      report,
    });
  }

  /** Reads a CSV or TSV file and encodes its pairs; one report tells of both. */
  static async fromFile(
    source: ByteSource,
    options: ReadPairsOptions & Omit<EncodePairsOptions, 'report'>,
  ): Promise<TranslationDataset> {
    const { tokenizer, specialIds, maxLength, ...readOptions } = options;
    checkOptions('TranslationDataset.fromFile', readOptions, readPairsOptionNames);
    const { pairs, report } = await readPairs(source, readOptions);
    const { signal } = readOptions;
    return TranslationDataset.fromPairs(pairs, {
      tokenizer,
      specialIds,
      maxLength,
      report,
      signal,
    });
  }

  /** Number of pairs. */
  get length(): number {
    return this.pairs.length;
  }

  [Symbol.iterator](): Iterator<TokenPair> {
    return this.pairs[Symbol.iterator]();
  }
}

function checkSequence(
  name: string,
  ids: readonly number[],
  minimum: number,
  vocabSize: number,
): void {
  if (!Array.isArray(ids) || ids.length < minimum) {
    const tokens = minimum === 1 ? 'one id' : `${minimum} ids (bos and something to predict)`;
    throw new RangeError(
      `TranslationDataset: ${name} must have at least ${tokens}, got ${describe(ids)}`,
    );
  }
  for (const id of ids) {
    if (!Number.isInteger(id) || id < 0 || id >= vocabSize) {
      throw new RangeError(
        `TranslationDataset: ${name} has the id ${describe(id)}; ids go from 0 to ${vocabSize - 1}`,
      );
    }
  }
}
