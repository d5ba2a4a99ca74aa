/** Options of all searches for a target: types, defaults, checks. */
import {
  checkBoolean,
  checkChoice,
  checkInteger,
  checkNonNegative,
  checkObject,
  checkOptions,
  checkPositive,
  checkPositiveOrInfinite,
  checkSignal,
  checkArray,
  orDefault,
} from '../runtime/arguments.js';
import type { SearchArguments } from './native/generation.js';

/** How the score of a target depends on its length. */
export interface LengthPenalty {
  /**
   * `'power'`: the score is the sum of log-probabilities divided by length^alpha; `'gnmt'`: by
   * ((5 + length) / 6)^alpha (Wu et al. 2016, section 7). The end token counts
   */
  kind: 'power' | 'gnmt';
  /** 0: none; 1 with `'power'`: the mean. */
  alpha: number;
}

/** Random choice of tokens instead of the most probable ones. */
export interface Sampling {
  /** Logits are divided by it; default 1. */
  temperature?: number | undefined;
  /** Choose among the k most probable tokens; default: all. */
  topK?: number | undefined;
  /**
   * Choose among the most probable tokens whose probabilities add up to this (Holtzman et al. 2020);
   * default 1: all.
   */
  topP?: number | undefined;
  /**
   * Makes a target repeatable: it depends on seed and source alone, not on the batch. Default 0.
   */
  seed?: number | undefined;
}

/** Which weights of the attention from target to source to return. */
export interface AttentionChoice {
  /** Index of the decoder layer; default: the last. */
  layer?: number | undefined;
  /** Index of the head; default: the mean of all. */
  head?: number | undefined;
}

/** A length that depends on the source: `ratio` times its number of tokens, `plus` some. */
export interface RelativeLength {
  /** Tokens for each token of the source, bos and eos included. */
  ratio: number;
  /** Tokens beyond these, an integer; default 0. */
  plus?: number | undefined;
}

/** Options of a search; by default greedy. */
export interface DecodingOptions {
  /** Number of hypotheses that are followed at a time, at most 256; default 1: greedy. */
  beam?: number | undefined;
  /** Number of targets to return, at most `beam`, or at most 256 samples; default 1. */
  nBest?: number | undefined;
  /**
   * Default: `{ kind: 'power', alpha: 1 }` with a beam, as in fairseq and CTranslate2, none without. A
   * number is the alpha of `'power'`.
   */
  lengthPenalty?: number | LengthPenalty | undefined;
  /**
   * beta of GNMT's coverage penalty: adds beta * the sum over source tokens of
   * log(min(attention received, 1)) to the score of a target; default 0.
   */
  coveragePenalty?: number | undefined;
  /**
   * A search ends when `beam * patience` hypotheses have ended, or when no later one can be better
   * than the `nBest` found; default 1 (Kasai et al. 2022). Infinity: only the latter.
   */
  patience?: number | undefined;
  /**
   * Minimum number of tokens before the end token; default 0. A length relative to the source is rounded
   * down.
   */
  minLength?: number | RelativeLength | undefined;
  /**
   * Maximum number of tokens, including the end token. Default: `{ ratio: 2, plus: 50 }`, so a model that
   * never ends a target costs little. A length relative to the source is rounded up, and is at most that
   * of the position table.
   */
  maxLength?: number | RelativeLength | undefined;
  /**
   * Makes tokens of the target less probable: a positive logit is divided by it, a negative one
   * multiplied (Keskar et al. 2019); default 1: none.
   */
  repetitionPenalty?: number | undefined;
  /** No sequence of so many tokens occurs twice in a target; default 0: no limit. */
  noRepeatNgram?: number | undefined;
  /** Ids that are never generated. */
  suppress?: readonly number[] | undefined;
  /** Ids that every target begins with. */
  prefix?: readonly number[] | undefined;
  /** Sample instead of taking the most probable tokens; not with a beam. */
  sampling?: Sampling | boolean | undefined;
  /** Return the log-probability of each token; default false. */
  scores?: boolean | undefined;
  /** Return attention weights; true: the mean over the heads of the last layer. Default false. */
  attention?: AttentionChoice | boolean | undefined;
  /** Aborts the search; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** @internal */
export const searchOptionNames = [
  ...['beam', 'nBest', 'lengthPenalty', 'coveragePenalty', 'patience', 'minLength', 'maxLength'],
  ...['repetitionPenalty', 'noRepeatNgram', 'suppress', 'prefix', 'sampling', 'scores'],
  ...['attention', 'signal'],
];

/** What the model allows. */
export interface SearchLimits {
  /** Number of target ids. */
  readonly vocabulary: number;
  /** Maximum number of tokens of a target; Infinity without position tables. */
  readonly longestTarget: number;
  readonly layers: number;
  readonly heads: number;
}

/** Options that have been checked. */
export interface CheckedSearch {
  readonly arguments: SearchArguments;
  /** The minimum number of tokens before the end token, for a source of so many tokens. */
  readonly minLengthOf: (sourceTokens: number) => number;
  /** The maximum number of tokens for a source of so many tokens. */
  readonly maxLengthOf: (sourceTokens: number) => number;
  readonly signal: AbortSignal | undefined;
  readonly seed: number;
}

/**
 * Checks all options.
 * @throws TypeError, RangeError naming the option
 */
export function checkSearch(
  owner: string,
  options: DecodingOptions,
  limits: SearchLimits,
): CheckedSearch {
  const beam = checkInteger(owner, 'beam', orDefault(options.beam, 1), 1, mostHypotheses);
  const sampling = checkSampling(owner, options.sampling);
  if (sampling !== null && beam > 1) {
    throw new RangeError(`${owner}: sampling has no beam, got beam ${beam}; leave one of them out`);
  }
  const nBest = checkInteger(owner, 'nBest', orDefault(options.nBest, 1), 1, mostHypotheses);
  if (sampling === null && nBest > beam) {
    throw new RangeError(
      `${owner}: nBest must be at most the beam, ${beam}, got ${nBest}; raise beam to ${nBest}`,
    );
  }
  const penalty = checkLengthPenalty(owner, options.lengthPenalty, beam > 1 ? 1 : 0);
  const ids = (name: 'suppress' | 'prefix') =>
    checkIdList(owner, name, orDefault(options[name], []), limits.vocabulary);
  const minLengthOf = checkMinLengths(owner, options.minLength, limits.longestTarget);
  const maxLengthOf = checkMaxLengths(owner, options.maxLength, limits.longestTarget);
  const prefix = ids('prefix');
  checkFixedLengths(owner, options, prefix.length, limits.longestTarget);
  const attention = checkAttention(owner, options.attention, limits);
  return {
    arguments: {
      beam,
      n_best: nBest,
      length_penalty: penalty.alpha,
      gnmt_penalty: penalty.kind === 'gnmt',
      coverage_penalty: checkNonNegative(
        owner,
        'coveragePenalty',
        orDefault(options.coveragePenalty, 0),
      ),
      patience: checkPositiveOrInfinite(owner, 'patience', orDefault(options.patience, 1)),
      repetition_penalty: checkPositive(
        owner,
        'repetitionPenalty',
        orDefault(options.repetitionPenalty, 1),
      ),
      no_repeat_ngram: checkInteger(owner, 'noRepeatNgram', orDefault(options.noRepeatNgram, 0), 0),
      suppressed: ids('suppress'),
      prefix,
      ...(sampling === null
        ? {}
        : { temperature: sampling.temperature, top_k: sampling.topK, top_p: sampling.topP }),
      scores: checkBoolean(owner, 'scores', orDefault(options.scores, false)),
      ...attention,
    },
    minLengthOf,
    maxLengthOf: (sourceTokens) =>
      Math.max(maxLengthOf(sourceTokens), minLengthOf(sourceTokens), prefix.length),
    signal: checkSignal(owner, 'signal', options.signal),
    seed: sampling?.seed ?? 0,
  };
}

/** Of one source; as many as are decoded at a time of all calls. */
const mostHypotheses = 256;

/** The default of `maxLength`. */
const usualLength: RelativeLength = { ratio: 2, plus: 50 };

function checkMinLengths(
  owner: string,
  given: unknown,
  longest: number,
): (sourceTokens: number) => number {
  if (typeof given === 'object' && given !== null) {
    const { ratio, plus } = checkRelativeLength(owner, 'minLength', given);
    // Of the longest target, one token is the end.
    return (sourceTokens) =>
      Math.max(0, Math.min(longest - 1, Math.floor(ratio * sourceTokens) + plus));
  }
  const checked = checkInteger(owner, 'minLength', orDefault(given, 0), 0);
  return () => checked;
}

function checkMaxLengths(
  owner: string,
  given: unknown,
  longest: number,
): (sourceTokens: number) => number {
  const wanted = orDefault(given, usualLength);
  if (typeof wanted === 'object' && wanted !== null) {
    const { ratio, plus } = checkRelativeLength(owner, 'maxLength', wanted);
    return (sourceTokens) => Math.max(1, Math.min(longest, Math.ceil(ratio * sourceTokens) + plus));
  }
  const checked = checkInteger(owner, 'maxLength', wanted, 1);
  if (checked > longest) {
    throw new RangeError(
      `${owner}: maxLength ${checked} exceeds the ${longest} positions of the model's table`,
    );
  }
  return () => checked;
}

function checkRelativeLength(
  owner: string,
  name: string,
  given: object,
): { ratio: number; plus: number } {
  checkOptions(`${owner} ${name}`, given, ['ratio', 'plus']);
  const { ratio, plus } = given as Partial<RelativeLength>;
  return {
    ratio: checkNonNegative(owner, `${name}.ratio`, ratio),
    plus: checkInteger(owner, `${name}.plus`, orDefault(plus, 0), Number.MIN_SAFE_INTEGER),
  };
}

/** Lengths that no source allows. @throws RangeError */
function checkFixedLengths(
  owner: string,
  { minLength, maxLength }: DecodingOptions,
  prefix: number,
  longest: number,
): void {
  const most = typeof maxLength === 'number' ? maxLength : longest;
  const least = typeof minLength === 'number' ? minLength : 0;
  const [name, length] = prefix > least ? ['the prefix', prefix] : ['minLength', least];
  if (length <= most) return;
  throw new RangeError(
    `${owner}: ${name} of ${length} tokens exceeds the maximum length of ${most}`,
  );
}

function checkLengthPenalty(owner: string, given: unknown, byDefault: number): LengthPenalty {
  if (given === undefined) return { kind: 'power', alpha: byDefault };
  if (typeof given === 'object' && given !== null) {
    const { kind, alpha } = given as Partial<LengthPenalty>;
    checkOptions(`${owner} lengthPenalty`, given, ['kind', 'alpha']);
    return {
      kind: checkChoice(owner, 'lengthPenalty.kind', kind, ['power', 'gnmt']),
      alpha: checkNonNegative(owner, 'lengthPenalty.alpha', alpha),
    };
  }
  return { kind: 'power', alpha: checkNonNegative(owner, 'lengthPenalty', given) };
}

function checkSampling(
  owner: string,
  given: unknown,
): { temperature: number; topK: number; topP: number; seed: number } | null {
  if (given === undefined || given === false) return null;
  if (given === true) return { temperature: 1, topK: 0, topP: 1, seed: 0 };
  checkObject(owner, 'sampling', given, '{ temperature, topK, topP, seed }');
  const options = given as Sampling;
  const name = `${owner} sampling`;
  checkOptions(name, options, ['temperature', 'topK', 'topP', 'seed']);
  const topP = checkPositive(name, 'topP', orDefault(options.topP, 1));
  if (topP > 1) throw new RangeError(`${name}: topP must be in (0, 1], got ${topP}`);
  return {
    temperature: checkPositive(name, 'temperature', orDefault(options.temperature, 1)),
    topK: options.topK === undefined ? 0 : checkInteger(name, 'topK', options.topK, 1),
    topP,
    seed: checkInteger(name, 'seed', orDefault(options.seed, 0), 0),
  };
}

function checkAttention(owner: string, given: unknown, limits: SearchLimits): SearchArguments {
  if (given === undefined || given === false) return {};
  if (given === true) return { attention: true };
  checkObject(owner, 'attention', given, '{ layer, head }');
  const { layer, head } = given as AttentionChoice;
  const name = `${owner} attention`;
  checkOptions(name, given, ['layer', 'head']);
  const index = (which: string, value: number | undefined, count: number) =>
    value === undefined ? -1 : checkInteger(name, which, value, 0, count - 1);
  return {
    attention: true,
    attention_layer: index('layer', layer, limits.layers),
    attention_head: index('head', head, limits.heads),
  };
}

/** @throws TypeError, RangeError naming the entry that is not an id of the vocabulary */
export function checkIdList(
  owner: string,
  name: string,
  ids: unknown,
  vocabulary: number,
): readonly number[] {
  checkArray(owner, name, ids, 'an array of ids');
  return ids.map((id, index) => checkInteger(owner, `${name}[${index}]`, id, 0, vocabulary - 1));
}
