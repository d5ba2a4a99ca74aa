/** BLEU (Papineni et al., 2002), with the rules of sacrebleu (Post, 2018). */
import {
  checkBoolean,
  checkChoice,
  checkInteger,
  checkOptions,
  checkPositive,
  orDefault,
} from '../runtime/arguments.js';
import type { References } from './corpus.js';
import { corpusScore, sentenceScore } from './corpusScore.js';
import type { Metric, MetricScore } from './metric.js';
import { matchesOf, wordNgrams } from './ngrams.js';
import { yesOrNo } from './signature.js';
import { bleuTokenizers, separatorOf, type BleuTokenizer } from './tokenizers/bleuTokenizer.js';
import { splitWords, stripEnd } from './whiteSpace.js';

/** What takes the place of a precision of 0, see {@link BleuOptions.smoothMethod}. */
export type BleuSmoothing = 'exp' | 'floor' | 'add-k' | 'none';

/** Options of {@link corpusBleu}. */
export interface BleuOptions {
  /**
   * How texts become words. `'13a'` (default): WMT's, for languages with spaces; `'intl'`: the same for the
   * punctuation of all scripts; `'zh'`: Chinese characters are words, the rest as in `'13a'`; `'char'`: all
   * characters are words; `'none'`: words are what is between white space, for texts already tokenized.
   */
  tokenize?: BleuTokenizer | undefined;
  /** Compare in lower case. Default false. */
  lowercase?: boolean | undefined;
  /**
   * What takes the place of n-grams without a match. `'exp'` (default): half a match for the first such
   * order, a quarter for the second, and so on; `'floor'`: `smoothValue` matches; `'add-k'`: `smoothValue`
   * is added to the matches and the totals of all orders but the first; `'none'`: the score is 0.
   */
  smoothMethod?: BleuSmoothing | undefined;
  /** The number for `'floor'` (default 0.1) and `'add-k'` (default 1). */
  smoothValue?: number | undefined;
  /** The longest n-grams. Default 4. */
  maxNgramOrder?: number | undefined;
  /**
   * Leave out the orders for which the hypotheses are too short. Default false; true for
   * {@link sentenceBleu}.
   */
  effectiveOrder?: boolean | undefined;
}

/** BLEU and what it is made of. */
export interface BleuScore extends MetricScore {
  readonly name: 'BLEU';
  /** For each order from 1: n-grams of the hypotheses that are in a reference. */
  readonly counts: readonly number[];
  /** For each order from 1: n-grams of the hypotheses. */
  readonly totals: readonly number[];
  /** For each order from 1: the share of matches in percent, smoothed. */
  readonly precisions: readonly number[];
  /** Factor below 1 for hypotheses that are shorter than their references. */
  readonly brevityPenalty: number;
  /** Words of the hypotheses. */
  readonly systemLength: number;
  /** Words of the references: for each hypothesis of the one that is closest in length. */
  readonly referenceLength: number;
}

/**
 * The BLEU of a corpus, equal to sacrebleu's.
 *
 * ```ts
 * const { score, signature } = corpusBleu(outputs, references);
 * ```
 *
 * @param hypotheses a translation for each sentence, not tokenized
 * @param references for each sentence a reference, or a list of them
 * @throws TypeError, RangeError if an argument is invalid, there is no hypothesis, or the numbers of
 *   hypotheses and references differ
 */
export function corpusBleu(
  hypotheses: readonly string[],
  references: References,
  options: BleuOptions = {},
): BleuScore {
  const owner = 'corpusBleu';
  return corpusScore(owner, bleuMetric(owner, options), hypotheses, references);
}

/**
 * The BLEU of one sentence. It is a rough number: BLEU is made for a corpus. `effectiveOrder` is on by
 * default.
 *
 * @param references a reference, or a list of them
 * @throws TypeError, RangeError if an argument is invalid
 */
export function sentenceBleu(
  hypothesis: string,
  references: string | readonly string[],
  options: BleuOptions = {},
): BleuScore {
  const owner = 'sentenceBleu';
  return sentenceScore(owner, bleuMetric(owner, options, true), hypothesis, references);
}

const optionNames = [
  'tokenize',
  'lowercase',
  'smoothMethod',
  'smoothValue',
  'maxNgramOrder',
  'effectiveOrder',
];

const smoothingMethods: readonly BleuSmoothing[] = ['exp', 'floor', 'add-k', 'none'];

/** @throws TypeError, RangeError naming the option */
export function bleuMetric(
  owner: string,
  options: BleuOptions,
  isSentence = false,
): Metric<BleuScore> {
  checkOptions(owner, options, optionNames);
  const tokenize = orDefault(options.tokenize, '13a');
  checkChoice(owner, 'tokenize', tokenize, bleuTokenizers);
  const lowercase = checkBoolean(owner, 'lowercase', orDefault(options.lowercase, false));
  const method = orDefault(options.smoothMethod, 'exp');
  checkChoice(owner, 'smoothMethod', method, smoothingMethods);
  const value = smoothValueOf(owner, method, options.smoothValue);
  const orders = checkInteger(owner, 'maxNgramOrder', orDefault(options.maxNgramOrder, 4), 1, 100);
  const effectiveOrder = checkBoolean(
    owner,
    'effectiveOrder',
    orDefault(options.effectiveOrder, isSentence),
  );
  const separate = separatorOf(tokenize);
  const wordsOf = (text: string) =>
    splitWords(separate(stripEnd(lowercase ? text.toLowerCase() : text)));
  return {
    statistics: (hypothesis, references) =>
      statisticsOf(wordsOf(hypothesis), references.map(wordsOf), orders),
    scoreOf: (sums) => scoreOf(sums, { orders, method, value, effectiveOrder }),
    settings: [
      ['case', lowercase ? 'lc' : 'mixed'],
      ['eff', yesOrNo(effectiveOrder)],
      ['tok', tokenize],
      ['smooth', value === 0 ? method : `${method}[${value.toFixed(2)}]`],
    ],
  };
}

/** 0 for a method without a number. */
function smoothValueOf(owner: string, method: BleuSmoothing, given: number | undefined): number {
  if (method === 'floor' || method === 'add-k') {
    return checkPositive(owner, 'smoothValue', orDefault(given, method === 'floor' ? 0.1 : 1));
  }
  if (given === undefined) return 0;
  throw new TypeError(
    `${owner}: smoothValue is for the smoothMethod 'floor' or 'add-k', got it with '${method}'`,
  );
}

/** The lengths of hypothesis and reference, the matches of each order, the totals of each order. */
function statisticsOf(
  hypothesis: readonly string[],
  references: readonly (readonly string[])[],
  orders: number,
): number[] {
  const matches: number[] = [];
  const totals: number[] = [];
  for (let order = 1; order <= orders; order++) {
    const wanted = new Map<string, number>();
    for (const reference of references) {
      for (const [key, count] of wordNgrams(reference, order)) {
        wanted.set(key, Math.max(wanted.get(key) ?? 0, count));
      }
    }
    matches.push(matchesOf(wordNgrams(hypothesis, order), wanted));
    totals.push(Math.max(0, hypothesis.length - order + 1));
  }
  const lengths = references.map(({ length }) => length);
  return [hypothesis.length, closestLength(hypothesis.length, lengths), ...matches, ...totals];
}

/** The shorter one of two that are as close. */
function closestLength(length: number, lengths: readonly number[]): number {
  const distance = (other: number) => Math.abs(other - length);
  return lengths.reduce((best, other) => {
    const difference = distance(other) - distance(best);
    return difference < 0 || (difference === 0 && other < best) ? other : best;
  });
}

interface ScoreSettings {
  readonly orders: number;
  readonly method: BleuSmoothing;
  readonly value: number;
  readonly effectiveOrder: boolean;
}

function scoreOf(
  sums: ArrayLike<number>,
  { orders, method, value, effectiveOrder }: ScoreSettings,
): Omit<BleuScore, 'signature'> {
  const [systemLength = 0, referenceLength = 0, ...rest] = Array.from(sums);
  const counts = rest.slice(0, orders);
  const totals = rest.slice(orders);
  const isShort = systemLength < referenceLength;
  const brevityPenalty =
    systemLength === 0 && isShort ? 0 : isShort ? Math.exp(1 - referenceLength / systemLength) : 1;
  const parts = { counts, totals, brevityPenalty, systemLength, referenceLength };
  const precisions = counts.map(() => 0);
  if (counts.every((count) => count === 0)) return { name: 'BLEU', score: 0, precisions, ...parts };
  let missing = 1;
  let used = orders;
  for (const [index, count] of counts.entries()) {
    const added = method === 'add-k' && index > 0 ? value : 0;
    const total = (totals[index] as number) + added;
    if (total === 0) break;
    if (effectiveOrder) used = index + 1;
    if (count + added > 0) {
      precisions[index] = (100 * (count + added)) / total;
    } else if (method === 'exp') {
      missing *= 2;
      precisions[index] = 100 / (missing * total);
    } else if (method === 'floor') {
      precisions[index] = (100 * value) / total;
    }
  }
  const logs = precisions.slice(0, used).map((precision) => Math.log(precision));
  // The logarithm of 0 is minus infinity, which gives 0.
  const score = brevityPenalty * Math.exp(logs.reduce((sum, log) => sum + log, 0) / used);
  return { name: 'BLEU', score, precisions, ...parts };
}
