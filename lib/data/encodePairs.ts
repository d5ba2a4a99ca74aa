import { TorchError } from '../runtime/errors.js';
import {
  checkArray,
  checkInteger,
  checkObject,
  checkRequiredOptions,
  checkSignal,
} from '../runtime/options.js';
import { checkTextPairs, type TextPair, type TokenPair } from './pairs.js';
import { checkReport, describeReport, newReport, type DataReport } from './report.js';
import { checkSpecialIds, type SpecialIds } from './tokenizers/specialIds.js';
import { checkTokenizer, type Tokenizer } from './tokenizers/tokenizer.js';

/** Options of {@link encodePairs}. */
export interface EncodePairsOptions {
  /** For both sides; one vocabulary has the tokens of source and target. */
  tokenizer: Tokenizer;
  /** The ids of pad, bos and eos, as `findSpecialIds` gives them. */
  specialIds: SpecialIds;
  /**
   * The most tokens a sequence may have, bos and eos included; longer pairs are left out and
   * counted. Default 200, the length of seed 001's table of positions.
   */
  maxLength?: number | undefined;
  /** A report to go on with, for example that of `readPairs`. Default: a new one. */
  report?: DataReport | undefined;
  /** Stops the work between two groups of pairs. */
  signal?: AbortSignal | undefined;
}

/** The names of all options of {@link encodePairs}. */
export const encodePairsOptionNames: readonly string[] = [
  'tokenizer',
  'specialIds',
  'maxLength',
  'report',
  'signal',
];

/**
 * bos, the tokens of a text, eos: what both sides of the model read.
 *
 * @throws TypeError, RangeError for what are no ids
 */
export function frame(ids: readonly number[], specialIds: SpecialIds): number[] {
  checkArray('frame', 'ids', ids, 'an array of ids');
  checkObject('frame', 'specialIds', specialIds, '{ pad, bos, eos }');
  const { bos, eos } = specialIds;
  checkInteger('frame', 'bos', bos, 0);
  checkInteger('frame', 'eos', eos, 0);
  return [bos, ...ids, eos];
}

/**
 * Turns sentence pairs into token ids with bos and eos on both sides. Left out and counted in the
 * report: pairs that give no token on one side, pairs longer than `maxLength`, and pairs whose text
 * spells the pad, bos or eos token, which the model would take for the real one.
 *
 * @throws TypeError, RangeError for a fault in the pairs or the options
 * @throws TorchError ERR_DATA when no pair is left
 */
export async function encodePairs(
  pairs: readonly TextPair[],
  options: EncodePairsOptions,
): Promise<{ pairs: TokenPair[]; report: DataReport }> {
  return encodePairsFor('encodePairs', pairs, options);
}

/** @param owner what the user called, for messages */
export async function encodePairsFor(
  owner: string,
  pairs: readonly TextPair[],
  options: EncodePairsOptions,
): Promise<{ pairs: TokenPair[]; report: DataReport }> {
  checkTextPairs(owner, pairs);
  checkRequiredOptions(owner, options, encodePairsOptionNames, 'tokenizer and specialIds');
  const { tokenizer, specialIds, maxLength = 200, signal } = options;
  checkTokenizer(owner, tokenizer);
  checkSpecialIds(specialIds, tokenizer.vocabSize, owner);
  checkInteger(owner, 'maxLength', maxLength, 3);
  if (options.report !== undefined) checkReport(owner, options.report);
  checkSignal(owner, 'signal', signal);
  const report = options.report ?? newReport('the pairs');
  if (options.report === undefined) report.rows = pairs.length;
  // Pairs that a reader kept are counted anew below.
  report.kept = 0;

  const batchOptions = { signal };
  const sources = await tokenizer.encodeBatch(
    pairs.map(({ src }) => src),
    batchOptions,
  );
  const targets = await tokenizer.encodeBatch(
    pairs.map(({ tgt }) => tgt),
    batchOptions,
  );
  const reserved = new Set([specialIds.pad, specialIds.bos, specialIds.eos]);
  const encoded: TokenPair[] = [];
  pairs.forEach((pair, index) => {
    const src = sources[index] as number[];
    const tgt = targets[index] as number[];
    const row = pair.row ?? index + 1;
    if (src.length === 0 || tgt.length === 0) {
      report.empty++;
      report.emptyRows.push(row);
    } else if (src.some((id) => reserved.has(id)) || tgt.some((id) => reserved.has(id))) {
      report.reserved++;
      report.reservedRows.push(row);
    } else if (Math.max(src.length, tgt.length) + 2 > maxLength) {
      report.tooLong++;
      report.tooLongRows.push(row);
    } else {
      report.kept++;
      encoded.push({ src: frame(src, specialIds), tgt: frame(tgt, specialIds), row });
    }
  });
  if (encoded.length === 0) {
    throw new TorchError('ERR_DATA', `no pair is left to train on; ${describeReport(report)}`);
  }
  return { pairs: encoded, report };
}
