/** The hypotheses and references of a corpus, checked. */
import { checkArray, checkString, checkStrings, describe } from '../runtime/arguments.js';
import { counted } from '../runtime/counted.js';

/**
 * The reference translations of a corpus: for each hypothesis a text, or a list of one or more texts. (In
 * sacrebleu it is the other way round: a list of all first references, a list of all second ones.)
 */
export type References = readonly (string | readonly string[])[];

/** Checked texts. */
export interface Corpus {
  readonly hypotheses: readonly string[];
  /** One or more for each hypothesis. */
  readonly references: readonly (readonly string[])[];
  /** References of each hypothesis; `'var'`: not the same number for all. */
  readonly referenceCount: number | 'var';
}

/**
 * @throws TypeError if one is not a text; RangeError if there is none, if their numbers differ, or if a
 *   hypothesis has no reference
 */
export function checkCorpus(owner: string, hypotheses: unknown, references: unknown): Corpus {
  const texts = checkStrings(owner, 'hypotheses', hypotheses);
  const { lists, count } = checkReferences(owner, references);
  if (texts.length !== lists.length) {
    const isTransposed =
      lists.length < texts.length && lists.every(({ length }) => length === texts.length);
    throw new RangeError(
      `${owner}: there must be a reference for each hypothesis, got ` +
        `${counted(texts.length, 'hypothesis', 'hypotheses')} and ${counted(lists.length, 'reference')}` +
        (isTransposed ? '; pass for each hypothesis the list of its references' : ''),
    );
  }
  return { hypotheses: texts, references: lists, referenceCount: count };
}

/** @throws as {@link checkCorpus} */
export function checkReferences(
  owner: string,
  references: unknown,
): { lists: string[][]; count: number | 'var' } {
  const form = 'an array with a text, or a list of texts, for each hypothesis';
  checkArray(owner, 'references', references, form);
  if (references.length === 0) {
    throw new RangeError(`${owner}: references is empty: there is nothing to score`);
  }
  // By index, because map skips holes.
  const lists = Array.from(references, (value, index) =>
    referencesOf(owner, `references[${index}]`, value),
  );
  const counts = new Set(lists.map(({ length }) => length));
  return { lists, count: counts.size === 1 ? (lists[0] as string[]).length : 'var' };
}

/** The references of one hypothesis. @throws as {@link checkCorpus} */
export function referencesOf(owner: string, name: string, value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (!Array.isArray(value)) {
    throw new TypeError(
      `${owner}: ${name} must be a text or a list of texts, got ${describe(value)}`,
    );
  }
  if (value.length === 0) throw new RangeError(`${owner}: ${name} has no text; it needs one`);
  return Array.from(value, (text: unknown, index) => checkString(owner, `${name}[${index}]`, text));
}
