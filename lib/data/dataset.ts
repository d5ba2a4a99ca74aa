import { checkInteger, checkRequiredOptions, describe } from '../runtime/arguments.js';
import { checkSource, type ByteSource } from './reading/byteSource.js';
import { encodePairsFor, encodePairsOptionNames, type EncodePairsOptions } from './encodePairs.js';
import { readPairsFor, readPairsOptionNames, type ReadPairsOptions } from './reading/pairReader.js';
import { checkTokenPairs, type TextPair, type TokenPair } from './pairs.js';
import { checkReport, newReport, type DataReport } from './report.js';
import { checkSpecialIds, type SpecialIds } from './tokenizers/specialIds.js';
import { checkTokenizer } from './tokenizers/tokenizer.js';

/** Options of {@link TranslationDataset}: what the token ids alone do not show. */
export interface TranslationDatasetOptions {
  /** The ids of pad, bos and eos. */
  specialIds: SpecialIds;
  /** Ids must be below this. */
  vocabSize: number;
  /** What happened to each row. Default: a report that all pairs were kept. */
  report?: DataReport | undefined;
}

/** Sentence pairs as token ids, ready for batching. */
export class TranslationDataset implements Iterable<TokenPair> {
  /** All pairs as token ids, in their original order. */
  readonly pairs: readonly TokenPair[];
  /** The ids of pad, bos and eos. */
  readonly specialIds: SpecialIds;
  /** Number of ids including the tokenizer's added tokens: the `vocabSize` of the model. */
  readonly vocabSize: number;
  /** What happened to each row of the file. */
  readonly report: DataReport;

  /**
   * @throws TypeError if an element of `pairs` is not a pair of id arrays
   * @throws TypeError, RangeError for invalid special ids, and for a pair with an id outside the
   * vocabulary or a target without a token to predict
   */
  constructor(pairs: readonly TokenPair[], options: TranslationDatasetOptions) {
    const owner = 'TranslationDataset';
    const names = ['specialIds', 'vocabSize', 'report'];
    checkRequiredOptions(owner, options, names, 'specialIds and vocabSize');
    const { specialIds, vocabSize } = options;
    checkInteger(owner, 'vocabSize', vocabSize, 1);
    checkSpecialIds(specialIds, vocabSize, owner);
    if (options.report !== undefined) checkReport(owner, options.report);
    checkTokenPairs(owner, pairs);
    pairs.forEach((pair, index) => {
      checkSequence(`pairs[${index}].src`, pair.src, pair.row, 1, vocabSize);
      checkSequence(`pairs[${index}].tgt`, pair.tgt, pair.row, 2, vocabSize);
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

  /**
   * Encodes texts; see {@link encodePairs} for the pairs that are skipped.
   *
   * @throws TypeError, RangeError, TorchError ERR_DATA as {@link encodePairs}
   */
  static async fromPairs(
    pairs: readonly TextPair[],
    options: EncodePairsOptions,
  ): Promise<TranslationDataset> {
    const encoded = await encodePairsFor('TranslationDataset.fromPairs', pairs, options);
    const { specialIds, tokenizer } = options;
    const { report } = encoded;
    return new TranslationDataset(encoded.pairs, {
      specialIds,
      vocabSize: tokenizer.vocabSize,
      report,
    });
  }

  /**
   * Reads a CSV or TSV file and encodes its pairs; one report covers both steps.
   *
   * @throws TypeError, RangeError, TorchError ERR_DATA as {@link readPairs} and {@link encodePairs}
   */
  static async fromFile(
    source: ByteSource,
    options: ReadPairsOptions & Omit<EncodePairsOptions, 'report'>,
  ): Promise<TranslationDataset> {
    const owner = 'TranslationDataset.fromFile';
    checkSource(owner, source);
    const names = encodePairsOptionNames.filter((name) => name !== 'report');
    const valid = [...new Set([...readPairsOptionNames, ...names])];
    checkRequiredOptions(owner, options, valid, 'src, tgt, tokenizer and specialIds');
    const { tokenizer, specialIds, maxLength, onProgress, ...readOptions } = options;
    // Before a large file is read.
    checkTokenizer(owner, tokenizer);
    checkSpecialIds(specialIds, tokenizer.vocabSize, owner);
    const { pairs, report } = await readPairsFor(owner, source, readOptions);
    const { signal } = readOptions;
    const encodeOptions = { tokenizer, specialIds, maxLength, report, signal, onProgress };
    const encoded = await encodePairsFor(owner, pairs, encodeOptions);
    const { vocabSize } = tokenizer;
    return new TranslationDataset(encoded.pairs, { specialIds, vocabSize, report });
  }

  /** Number of pairs. */
  get length(): number {
    return this.pairs.length;
  }

  /** The pairs, in their original order. */
  [Symbol.iterator](): Iterator<TokenPair> {
    return this.pairs[Symbol.iterator]();
  }
}

function checkSequence(
  name: string,
  ids: readonly number[],
  row: number,
  minimum: number,
  vocabSize: number,
): void {
  if (!Array.isArray(ids) || ids.length < minimum) {
    const tokens = minimum === 1 ? 'one id' : `${minimum} ids (bos and something to predict)`;
    throw new RangeError(
      `TranslationDataset: ${name} must have at least ${tokens}, got ${describe(ids)}`,
    );
  }
  for (let position = 0; position < ids.length; position++) {
    const id = ids[position] as number;
    if (!Number.isInteger(id) || id < 0 || id >= vocabSize) {
      throw new RangeError(
        `TranslationDataset: ${name} has the id ${describe(id)}; ids range from 0 to ` +
          `${vocabSize - 1} (at position ${position}, row ${row})`,
      );
    }
  }
}
