import { TorchError } from '../runtime/errors.js';
import { checkInteger, checkOptions } from '../runtime/options.js';
import type { TokenPair } from './dataset.js';
import { describeReport, newReport, type DataReport } from './report.js';
import { checkSpecialIds, type SpecialIds } from './specialIds.js';
import type { Tokenizer } from './tokenizer.js';

export interface EncodePairsOptions {
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

/** Texts to encode; `row` is for reports, by default the place in the list, from 1. */
export interface TextPair {
  src: string;
  tgt: string;
  row?: number | undefined;
}

/** bos, the tokens of a text, eos: what both sides of the model read. */
export function frame(ids: readonly number[], { bos, eos }: SpecialIds): number[] {
  return [bos, ...ids, eos];
}

/**
 * Turns sentence pairs into token ids with bos and eos on both sides. Left out and counted in the
 * report: pairs that give no token on one side, pairs longer than `maxLength`, and pairs whose text
 * spells the pad, bos or eos token, which the model would take for the real one.
 *
 * @throws TorchError ERR_DATA when no pair is left
 */
export async function encodePairs(
  pairs: readonly TextPair[],
  options: EncodePairsOptions,
): Promise<{ pairs: TokenPair[]; report: DataReport }> {
  const owner = 'encodePairs';
  checkOptions(owner, options, ['tokenizer', 'specialIds', 'maxLength', 'report', 'signal']);
  const { tokenizer, specialIds, maxLength = 200, signal } = options;
  checkSpecialIds(specialIds, tokenizer.vocabSize, owner);
  checkInteger(owner, 'maxLength', maxLength, 3);
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
