/** Sentence pairs, as texts and as token ids. */
import { checkArray, checkInteger, checkObject, checkString } from '../runtime/arguments.js';

/** A pair of texts to encode. */
export interface TextPair {
  /** The sentence to translate. */
  src: string;
  /** Its translation. */
  tgt: string;
  /** Row number for reports. Default: the position in the list, from 1. */
  row?: number | undefined;
}

/** A sentence pair as token ids. */
export interface TokenPair {
  /** Source: bos, tokens, eos. */
  src: readonly number[];
  /** Target: bos, tokens, eos. */
  tgt: readonly number[];
  /** Number of the row that the pair was read from. */
  row: number;
}

/** Checks sentence pairs as texts. @throws TypeError naming the pair and its side */
export function checkTextPairs(
  owner: string,
  value: unknown,
): asserts value is readonly TextPair[] {
  const form = '{ src, tgt } with two texts';
  checkArray(owner, 'pairs', value, `an array of ${form}`);
  for (let index = 0; index < value.length; index++) {
    const name = `pairs[${index}]`;
    const { src, tgt, row } = checkObject(owner, name, value[index], form);
    checkString(owner, `${name}.src`, src);
    checkString(owner, `${name}.tgt`, tgt);
    if (row !== undefined) checkInteger(owner, `${name}.row`, row, 0);
  }
}

/** Checks sentence pairs as ids; the caller checks the ids themselves. @throws TypeError */
export function checkTokenPairs(owner: string, value: unknown): void {
  const form = '{ src, tgt, row } with two arrays of ids';
  checkArray(owner, 'pairs', value, `an array of ${form}`);
  for (let index = 0; index < value.length; index++) {
    const { src, tgt } = checkObject(owner, `pairs[${index}]`, value[index], form);
    checkArray(owner, `pairs[${index}].src`, src, 'an array of ids');
    checkArray(owner, `pairs[${index}].tgt`, tgt, 'an array of ids');
  }
}
