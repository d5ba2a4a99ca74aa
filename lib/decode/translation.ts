/** What {@link Translator} takes and returns. */
import type { DecodingOptions } from './decodingOptions.js';

/** How texts are split into sentences. */
export interface SplitOptions {
  /** BCP 47 tag of the texts' language, for `Intl.Segmenter`; default: that of the process. */
  locale?: string | undefined;
}

/** Options of {@link Translator.translate}: those of a search, by default greedy. */
export interface TranslateOptions extends Omit<DecodingOptions, 'attention' | 'nBest' | 'scores'> {
  /** Number of texts of this call that are decoded together. Default 32. */
  batchSize?: number | undefined;
  /**
   * Translate the sentences of a text one by one and join them again: line ends, blank lines, indents
   * and other white space around sentences are kept exactly. A sentence that is too long for the model
   * is cut, at white space if there is any. Default false: a text is translated as a whole.
   */
  split?: boolean | SplitOptions | undefined;
}

/** Options of {@link Translator.translateDetailed}. */
export interface DetailedOptions extends Omit<DecodingOptions, 'scores'> {
  /** Number of texts of this call that are decoded together. Default 32. */
  batchSize?: number | undefined;
  /** As for {@link Translator.translate}; the result then has `sentences`. Default false. */
  split?: boolean | SplitOptions | undefined;
}

/** Options of {@link Translator.translateStreaming}. */
export type StreamOptions = Omit<TranslateOptions, 'batchSize' | 'split'>;

/** What to do with a line that is too long for the model. */
export type TooLongAction = 'error' | 'skip' | 'split';

/** Options of {@link Translator.translateLines}. */
export interface LineOptions extends TranslateOptions {
  /**
   * Number of lines that are read and translated together. Decoding is faster with more; the output of
   * the first of them comes with that of the last. The first windows are smaller. Default 256.
   */
  window?: number | undefined;
  /**
   * What to do with a line that is too long for the model: `'error'` (default) ends the translation after
   * the lines before it, `'skip'` gives an empty output, `'split'` translates it in parts that fit, cut
   * at ends of sentences or at white space if there is any. What has more than 100,000 characters is
   * never tokenized: such a line is skipped by both.
   */
  onTooLong?: TooLongAction | undefined;
  /** Called after each window whose outputs have been taken. */
  onProgress?: ((progress: LineReport) => void) | undefined;
}

/** Some lines of a text. */
export interface LineNumbers {
  /** How many there are. */
  readonly count: number;
  /** The numbers of the first ten, from 1. */
  readonly first: readonly number[];
}

/** What has become of lines so far. */
export interface LineReport {
  /** Lines translated, including those that were skipped or split. */
  readonly lines: number;
  /** Lines that were too long, with an empty output. */
  readonly skipped: LineNumbers;
  /** Lines that were too long and were translated in parts. */
  readonly split: LineNumbers;
}

/** A token of an output. */
export interface TranslatedToken {
  /** As in the vocabulary. */
  readonly token: string;
  /** Its log-probability. */
  readonly score: number;
}

/** One of the outputs for a text. */
export interface TranslationHypothesis {
  /** As `translate` returns it. */
  readonly text: string;
  /** Sum of the tokens' log-probabilities, with the penalties of the search. */
  readonly score: number;
  /** False if it was cut off at `maxLength` before the model ended it. */
  readonly ended: boolean;
  /** Its tokens, without special ones. */
  readonly tokens: readonly TranslatedToken[];
  /** Log-probability of the end token; null if it was cut off, or for several sentences. */
  readonly endScore: number | null;
  /**
   * For each of `tokens` a weight for each of the text's `sourceTokens`; null unless asked for, or for
   * a text that was split, whose sentences have them.
   */
  readonly attention: readonly (readonly number[])[] | null;
}

/** The outputs for a text, see {@link Translator.translateDetailed}. */
export interface Translation {
  /** The best output. */
  readonly text: string;
  /** The text's tokens as in the vocabulary, with bos and eos. */
  readonly sourceTokens: readonly string[];
  /**
   * The best first; empty for an empty text. Of a text that was split, the first has the best output of
   * each sentence, the second the second best, and so on; the score is the sum of theirs.
   */
  readonly hypotheses: readonly TranslationHypothesis[];
  /** The sentences with their own outputs; null unless the text was split. */
  readonly sentences: readonly TranslatedSentence[] | null;
}

/** A sentence of a text that was split, or a part of one that was too long. */
export interface TranslatedSentence extends Omit<Translation, 'sentences'> {
  /** As in the text. */
  readonly source: string;
}
