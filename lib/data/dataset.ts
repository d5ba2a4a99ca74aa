import { checkInteger, checkRequiredOptions, describe } from '../runtime/arguments.js';
import { checkSource, type ByteSource } from './reading/byteSource.js';
import { encodePairsFor, encodePairsOptionNames, type EncodePairsOptions } from './encodePairs.js';
import { readPairsFor, readPairsOptionNames, type ReadPairsOptions } from './reading/pairReader.js';
import { checkTokenPairs, type TextPair, type TokenPair } from './pairs.js';
import { checkReport, newReport, type DataReport } from './report.js';
import { checkSpecialIds, type SpecialIds } from './tokenizers/specialIds.js';
import { checkTokenizer } from './tokenizers/tokenizer.js';

/** What pairs in token ids do not tell themselves. */
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
  /** All pairs in token ids, in the order in which they came. */
  readonly pairs: readonly TokenPair[];
  /** The ids of pad, bos and eos. */
  readonly specialIds: SpecialIds;
  /** Number of ids, the tokenizer's added tokens included: what `makeModel` is given. */
  readonly vocabSize: number;
  /** What became of every row of the file. */
  readonly report: DataReport;

  /**
   * @throws TypeError for what is no pair of ids
   * @throws TypeError, RangeError for special ids that do not fit, and for a pair with an id outside
   * the vocabulary or a target without a token to predict
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
   * Encodes texts; see {@link encodePairs} for what is left out.
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
   * Reads a CSV or TSV file and encodes its pairs; one report tells of both.
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
    // A large file is not read for nothing.
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

  /** The pairs, in the order in which they came. */
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
        `TranslationDataset: ${name} has the id ${describe(id)}; ids go from 0 to ` +
          `${vocabSize - 1} (at position ${position}, row ${row})`,
      );
    }
  }
}
