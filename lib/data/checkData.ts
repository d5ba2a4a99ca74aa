/** Checks of what users hand to this folder's functions; internal, unlike its other files. */
import {
  checkArray,
  checkInstance,
  checkInteger,
  checkObject,
  checkString,
  describe,
} from '../runtime/options.js';
import type { TextPair } from './encodePairs.js';
import type { DataReport } from './report.js';
import { Tokenizer } from './tokenizers/tokenizer.js';

/** @throws TypeError with the ways to make one */
export function checkTokenizer(owner: string, value: unknown): asserts value is Tokenizer {
  checkInstance(owner, 'tokenizer', value, Tokenizer, 'Tokenizer.fromFile or Tokenizer.fromJson');
}

/** @throws RangeError for a tokenizer with ids that the model does not have */
export function checkTokenizerFits(owner: string, tokenizer: Tokenizer, vocabSize: number): void {
  if (tokenizer.vocabSize <= vocabSize) return;
  throw new RangeError(
    `${owner}: the tokenizer has ${tokenizer.vocabSize} ids, the model only ${vocabSize}; ` +
      'make the model with tokenizer.vocabSize',
  );
}

/** Sentence pairs as texts. @throws TypeError naming the pair and its part */
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

/** Sentence pairs as ids; what the ids are is left to the caller. @throws TypeError */
export function checkTokenPairs(owner: string, value: unknown): void {
  const form = '{ src, tgt, row } with two arrays of ids';
  checkArray(owner, 'pairs', value, `an array of ${form}`);
  for (let index = 0; index < value.length; index++) {
    const { src, tgt } = checkObject(owner, `pairs[${index}]`, value[index], form);
    checkArray(owner, `pairs[${index}].src`, src, 'an array of ids');
    checkArray(owner, `pairs[${index}].tgt`, tgt, 'an array of ids');
  }
}

/** @throws TypeError naming the field that is missing */
export function checkReport(owner: string, value: unknown): asserts value is DataReport {
  const report = checkObject(owner, 'report', value, 'a DataReport such as readPairs gives');
  checkString(owner, 'report.name', report['name']);
  for (const name of ['rows', 'kept', 'empty', 'tooLong', 'reserved']) {
    checkInteger(owner, `report.${name}`, report[name], 0);
  }
  for (const name of ['malformed', 'emptyRows', 'tooLongRows', 'reservedRows']) {
    checkArray(owner, `report.${name}`, report[name], 'an array');
  }
}

/** Texts that can be gone through, now or later. @throws TypeError with the way out */
export function checkTexts(owner: string, value: unknown): void {
  if (typeof value === 'string') {
    // It would be taken for its characters.
    throw new TypeError(
      `${owner}: texts must be an iterable of texts, got ${describe(value)}; for a single one pass [text]`,
    );
  }
  if (isIterable(value)) return;
  throw new TypeError(
    `${owner}: texts must be an iterable of strings, such as an array, got ${describe(value)}`,
  );
}

/** Whether `for await` can go through an object. */
export function isIterable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const object = value as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown };
  return (
    typeof object[Symbol.asyncIterator] === 'function' ||
    typeof object[Symbol.iterator] === 'function'
  );
}
