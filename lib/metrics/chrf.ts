/** chrF (Popović, 2015) and chrF++ (Popović, 2017), with the rules of sacrebleu. */
import { checkBoolean, checkInteger, checkOptions, orDefault } from '../runtime/arguments.js';
import type { References } from './corpus.js';
import { corpusScore, sentenceScore } from './corpusScore.js';
import type { Metric, MetricScore } from './metric.js';
import { characterNgrams, matchesOf, totalOf, wordNgrams, type Counts } from './ngrams.js';
import { yesOrNo } from './signature.js';
import { splitWords } from './whiteSpace.js';

/** Options of {@link corpusChrf}. */
export interface ChrfOptions {
  /** The longest n-grams of characters. Default 6. */
  charOrder?: number | undefined;
  /** The longest n-grams of words; 2 is chrF++. Default 0: none. */
  wordOrder?: number | undefined;
  /** How many times more recall counts than precision. Default 2. */
  beta?: number | undefined;
  /** Compare in lower case. Default false. */
  lowercase?: boolean | undefined;
  /** White space is a character too. Default false: it is removed. */
  whitespace?: boolean | undefined;
  /**
   * The mean of the F scores of all orders, as the original program has it. Default false: the F score of
   * the mean precision and recall, without orders for which hypothesis or reference is too short.
   */
  epsSmoothing?: boolean | undefined;
}

/** chrF and its settings. */
export interface ChrfScore extends MetricScore {
  /** The longest n-grams of characters. */
  readonly charOrder: number;
  /** The longest n-grams of words. */
  readonly wordOrder: number;
  /** How many times more recall counts than precision. */
  readonly beta: number;
}

/**
 * The chrF of a corpus, equal to sacrebleu's. It needs no tokenizer, so it suits all languages.
 *
 * @param hypotheses a translation for each sentence
 * @param references for each sentence a reference, or a list of them, of which the best counts
 * @throws TypeError, RangeError if an argument is invalid, there is no hypothesis, or the numbers of
 *   hypotheses and references differ
 */
export function corpusChrf(
  hypotheses: readonly string[],
  references: References,
  options: ChrfOptions = {},
): ChrfScore {
  const owner = 'corpusChrf';
  return corpusScore(owner, chrfMetric(owner, options), hypotheses, references);
}

/**
 * The chrF of one sentence.
 *
 * @param references a reference, or a list of them, of which the best counts
 * @throws TypeError, RangeError if an argument is invalid
 */
export function sentenceChrf(
  hypothesis: string,
  references: string | readonly string[],
  options: ChrfOptions = {},
): ChrfScore {
  const owner = 'sentenceChrf';
  return sentenceScore(owner, chrfMetric(owner, options), hypothesis, references);
}

interface Settings {
  readonly charOrder: number;
  readonly wordOrder: number;
  readonly beta: number;
  readonly lowercase: boolean;
  readonly whitespace: boolean;
  readonly epsSmoothing: boolean;
}

const optionNames = ['charOrder', 'wordOrder', 'beta', 'lowercase', 'whitespace', 'epsSmoothing'];

/** @throws TypeError, RangeError naming the option */
export function chrfMetric(owner: string, options: ChrfOptions): Metric<ChrfScore> {
  checkOptions(owner, options, optionNames);
  const settings: Settings = {
    charOrder: checkInteger(owner, 'charOrder', orDefault(options.charOrder, 6), 1, 100),
    wordOrder: checkInteger(owner, 'wordOrder', orDefault(options.wordOrder, 0), 0, 100),
    beta: checkInteger(owner, 'beta', orDefault(options.beta, 2), 1, 1000),
    lowercase: checkBoolean(owner, 'lowercase', orDefault(options.lowercase, false)),
    whitespace: checkBoolean(owner, 'whitespace', orDefault(options.whitespace, false)),
    epsSmoothing: checkBoolean(owner, 'epsSmoothing', orDefault(options.epsSmoothing, false)),
  };
  const { charOrder, wordOrder, beta, lowercase, whitespace, epsSmoothing } = settings;
  const name = `chrF${beta}${'+'.repeat(wordOrder)}`;
  return {
    statistics: (hypothesis, references) => statisticsOf(hypothesis, references, settings),
    scoreOf: (sums) => ({ name, score: fScore(sums, settings), charOrder, wordOrder, beta }),
    settings: [
      ['case', lowercase ? 'lc' : 'mixed'],
      ['eff', yesOrNo(!epsSmoothing)],
      ['nc', charOrder],
      ['nw', wordOrder],
      ['space', yesOrNo(whitespace)],
    ],
  };
}

/** For each order the n-grams of the hypothesis, those of the best reference, and the matches. */
function statisticsOf(
  hypothesis: string,
  references: readonly string[],
  settings: Settings,
): number[] {
  const found = ngramsOf(hypothesis, settings);
  let best: number[] = [];
  let bestScore = -1;
  for (const reference of references) {
    const numbers = ngramsOf(reference, settings).flatMap((wanted, index) => {
      const own = found[index] as Counts;
      return [wanted.size > 0 ? totalOf(own) : 0, totalOf(wanted), matchesOf(own, wanted)];
    });
    const score = fScore(numbers, settings);
    if (score > bestScore) [best, bestScore] = [numbers, score];
  }
  return best;
}

function ngramsOf(given: string, settings: Settings): Counts[] {
  const { charOrder, wordOrder, lowercase, whitespace } = settings;
  const text = lowercase ? given.toLowerCase() : given;
  const ngrams = characterNgrams(whitespace ? text : splitWords(text).join(''), charOrder);
  if (wordOrder === 0) return ngrams;
  const words = splitWords(text).flatMap(withoutPunctuation);
  for (let order = 1; order <= wordOrder; order++) ngrams.push(wordNgrams(words, order));
  return ngrams;
}

/** A word and the punctuation at its end, else at its start. */
function withoutPunctuation(word: string): string[] {
  const [first = ''] = word;
  if (word.length === first.length) return [word];
  if (punctuation.test(word.slice(-1))) return [word.slice(0, -1), word.slice(-1)];
  return punctuation.test(first) ? [first, word.slice(1)] : [word];
}

const punctuation = /^[!-/:-@[-`{-~]$/;

/** @returns from 0 to 100 */
function fScore(statistics: ArrayLike<number>, settings: Settings): number {
  const { charOrder, wordOrder, beta, epsSmoothing } = settings;
  const orders = charOrder + wordOrder;
  const weight = beta ** 2;
  const tiny = 1e-16;
  let sum = 0;
  let used = 0;
  let precisionSum = 0;
  let recallSum = 0;
  for (let index = 0; index < orders; index++) {
    const found = statistics[3 * index] as number;
    const wanted = statistics[3 * index + 1] as number;
    const matches = statistics[3 * index + 2] as number;
    const precision = found > 0 ? matches / found : tiny;
    const recall = wanted > 0 ? matches / wanted : tiny;
    const divisor = weight * precision + recall;
    sum += divisor > 0 ? ((1 + weight) * precision * recall) / divisor : tiny;
    if (found > 0 && wanted > 0) {
      precisionSum += precision;
      recallSum += recall;
      used++;
    }
  }
  if (epsSmoothing) return (100 * sum) / orders;
  if (precisionSum + recallSum === 0) return 0;
  const [precision, recall] = [precisionSum / used, recallSum / used];
  return (100 * (1 + weight) * precision * recall) / (weight * precision + recall);
}
