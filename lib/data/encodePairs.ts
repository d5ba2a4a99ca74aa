import { TorchError } from '../runtime/errors.js';
import {
  checkArray,
  checkFunction,
  checkInteger,
  checkObject,
  checkRequiredOptions,
  checkSignal,
} from '../runtime/arguments.js';
import { checkTextPairs, type TextPair, type TokenPair } from './pairs.js';
import { checkReport, describeReport, newReport, type DataReport } from './report.js';
import { maxTextLength } from './text.js';
import { checkSpecialIds, type SpecialIds } from './tokenizers/specialIds.js';
import {
  checkTokenizer,
  textsPerCall,
  type EncodedText,
  type Tokenizer,
} from './tokenizers/tokenizer.js';

/** Both texts of a pair go into one call. */
const groupSize = textsPerCall / 2;

/** Options of {@link encodePairs}. */
export interface EncodePairsOptions {
  /** Used for both sides; source and target share one vocabulary. */
  tokenizer: Tokenizer;
  /** The ids of pad, bos and eos, as returned by `findSpecialIds`. */
  specialIds: SpecialIds;
  /**
   * Maximum number of tokens in a sequence, including bos and eos; longer pairs are skipped and
   * counted. Default 200, the length of seed 001's table of positions.
   */
  maxLength?: number | undefined;
  /** A report to continue, for example that of `readPairs`. Default: a new one. */
  report?: DataReport | undefined;
  /** Aborts between two groups of pairs. */
  signal?: AbortSignal | undefined;
  /** Called after each group with the number of pairs done and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** The names of all options of {@link encodePairs}. */
export const encodePairsOptionNames: readonly string[] = [
  'tokenizer',
  'specialIds',
  'maxLength',
  'report',
  'signal',
  'onProgress',
];

/**
 * Puts bos before and eos after the ids of a text, as both sides of the model expect.
 *
 * @throws TypeError, RangeError if `ids` or `specialIds` contain an invalid id
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
 * Encodes sentence pairs as token ids with bos and eos on both sides. Skipped and counted in the
 * report: pairs with no tokens on one side, pairs longer than `maxLength` or with a text of more
 * than 100,000 characters, which is not tokenized at all, and pairs whose text contains the pad,
 * bos or eos token, which the model would mistake for the real one.
 *
 * @throws TypeError, RangeError for invalid pairs or options
 * @throws TorchError ERR_DATA if no pair is left
 */
export async function encodePairs(
  pairs: readonly TextPair[],
  options: EncodePairsOptions,
): Promise<{ pairs: TokenPair[]; report: DataReport }> {
  return encodePairsFor('encodePairs', pairs, options);
}

/** @param owner the function that the user called, for messages */
export async function encodePairsFor(
  owner: string,
  pairs: readonly TextPair[],
  options: EncodePairsOptions,
): Promise<{ pairs: TokenPair[]; report: DataReport }> {
  checkTextPairs(owner, pairs);
  checkRequiredOptions(owner, options, encodePairsOptionNames, 'tokenizer and specialIds');
  const { tokenizer, specialIds, maxLength = 200, signal, onProgress } = options;
  checkTokenizer(owner, tokenizer);
  checkSpecialIds(specialIds, tokenizer.vocabSize, owner);
  checkInteger(owner, 'maxLength', maxLength, 3);
  if (options.report !== undefined) checkReport(owner, options.report);
  checkSignal(owner, 'signal', signal);
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
  const report = options.report ?? newReport('the pairs');
  if (options.report === undefined) report.rows = pairs.length;
  // Pairs that a reader kept are counted again below.
  report.kept = 0;

  const reserved = new Set([specialIds.pad, specialIds.bos, specialIds.eos]);
  const isReserved = (id: number) => reserved.has(id);
  const leaveOut = (reason: 'empty' | 'reserved' | 'tooLong', row: number) => {
    report[reason]++;
    report[`${reason}Rows`].push(row);
  };
  const encoded: TokenPair[] = [];
  for (let start = 0; start < pairs.length; start += groupSize) {
    signal?.throwIfAborted();
    const group = pairs.slice(start, start + groupSize);
    const texts = group.flatMap((pair) => (isTooLarge(pair) ? ['', ''] : [pair.src, pair.tgt]));
    const results = await tokenizer.encodeNotingUnknown(owner, texts);
    group.forEach((pair, index) => {
      const [src, tgt] = results.slice(2 * index, 2 * index + 2) as [EncodedText, EncodedText];
      const row = pair.row ?? start + index + 1;
      const { length } = src.ids.length > tgt.ids.length ? src.ids : tgt.ids;
      if (isTooLarge(pair)) {
        leaveOut('tooLong', row);
      } else if (src.ids.length === 0 || tgt.ids.length === 0) {
        leaveOut('empty', row);
      } else if (src.ids.some(isReserved) || tgt.ids.some(isReserved)) {
        leaveOut('reserved', row);
      } else if (length + 2 > maxLength) {
        leaveOut('tooLong', row);
      } else {
        report.kept++;
        if (src.hasUnknown || tgt.hasUnknown) {
          report.unknown++;
          report.unknownRows.push(row);
        }
        encoded.push({ src: frame(src.ids, specialIds), tgt: frame(tgt.ids, specialIds), row });
      }
    });
    onProgress?.(start + group.length, pairs.length);
  }
  if (encoded.length === 0) {
    throw new TorchError('ERR_DATA', `no pair is left to train on; ${describeReport(report)}`);
  }
  return { pairs: encoded, report };
}

function isTooLarge({ src, tgt }: TextPair): boolean {
  return Math.max(src.length, tgt.length) > maxTextLength;
}
