/** TER, the translation edit rate (Snover et al., 2006), with the rules of sacrebleu. */
import { checkBoolean, checkOptions, orDefault } from '../runtime/arguments.js';
import type { References } from './corpus.js';
import { corpusScore, sentenceScore } from './corpusScore.js';
import type { Metric, MetricScore } from './metric.js';
import { yesOrNo } from './signature.js';
import { editsBetween } from './ter/shifts.js';
import { tercomWords } from './tokenizers/tercomTokenizer.js';
import { stripEnd } from './whiteSpace.js';

/** Options of {@link corpusTer}. */
export interface TerOptions {
  /** Make punctuation words of its own, and decode `&amp;` and the like. Default false. */
  normalized?: boolean | undefined;
  /** Remove `. , ? : ; ! " ( )`. Default false. */
  noPunct?: boolean | undefined;
  /**
   * With `normalized`: Chinese characters are words. With `noPunct`: Chinese punctuation is removed too.
   * Without them it changes nothing. Default false.
   */
  asianSupport?: boolean | undefined;
  /** Default false: compare in lower case. */
  caseSensitive?: boolean | undefined;
}

/** TER and what it is made of. */
export interface TerScore extends MetricScore {
  readonly name: 'TER';
  /** Insertions, deletions, substitutions and shifts of word sequences, to the closest reference. */
  readonly edits: number;
  /** Words of the references: for each hypothesis the mean of all its references. */
  readonly referenceLength: number;
}

/**
 * The TER of a corpus, equal to sacrebleu's: edits per 100 words of the references. Lower is better, and 0
 * is perfect. Like sacrebleu, it looks at no more than 1000 shifts for a hypothesis.
 *
 * @param hypotheses a translation for each sentence
 * @param references for each sentence a reference, or a list of them, of which the closest counts
 * @throws TypeError, RangeError if an argument is invalid, there is no hypothesis, or the numbers of
 *   hypotheses and references differ
 */
export function corpusTer(
  hypotheses: readonly string[],
  references: References,
  options: TerOptions = {},
): TerScore {
  const owner = 'corpusTer';
  return corpusScore(owner, terMetric(owner, options), hypotheses, references);
}

/**
 * The TER of one sentence.
 *
 * @param references a reference, or a list of them, of which the closest counts
 * @throws TypeError, RangeError if an argument is invalid
 */
export function sentenceTer(
  hypothesis: string,
  references: string | readonly string[],
  options: TerOptions = {},
): TerScore {
  const owner = 'sentenceTer';
  return sentenceScore(owner, terMetric(owner, options), hypothesis, references);
}

const optionNames = ['normalized', 'noPunct', 'asianSupport', 'caseSensitive'];

/** @throws TypeError naming the option */
export function terMetric(owner: string, options: TerOptions): Metric<TerScore> {
  checkOptions(owner, options, optionNames);
  const flag = (name: keyof TerOptions) =>
    checkBoolean(owner, name, orDefault(options[name], false));
  const settings = {
    normalized: flag('normalized'),
    noPunct: flag('noPunct'),
    asianSupport: flag('asianSupport'),
    caseSensitive: flag('caseSensitive'),
  };
  const wordsOf = (text: string) => tercomWords(stripEnd(text), settings);
  // sacrebleu prepares references twice, which makes a difference with `normalized`: "a..5" becomes
  // "a . .5", and then "a . . 5".
  const referenceWordsOf = (text: string) => wordsOf(wordsOf(text).join(' '));
  return {
    statistics(hypothesis, references) {
      const words = wordsOf(hypothesis);
      const wanted = references.map(referenceWordsOf);
      const lengths = wanted.reduce((sum, { length }) => sum + length, 0);
      const edits = Math.min(...wanted.map((reference) => editsBetween(words, reference)));
      return [edits, lengths / wanted.length];
    },
    scoreOf(sums) {
      const [edits = 0, referenceLength = 0] = Array.from(sums);
      const perWord = referenceLength > 0 ? edits / referenceLength : edits > 0 ? 1 : 0;
      return { name: 'TER', score: 100 * perWord, edits, referenceLength };
    },
    settings: [
      ['case', settings.caseSensitive ? 'mixed' : 'lc'],
      ['tok', 'tercom'],
      ['norm', yesOrNo(settings.normalized)],
      ['punct', yesOrNo(!settings.noPunct)],
      ['asian', yesOrNo(settings.asianSupport)],
    ],
  };
}
