/** What the server needs of a translator. */

/** Options of the methods of {@link ServedTranslator}. */
export interface ServedOptions {
  /** Aborts when the client has gone, or the time is up; the promise then rejects with its reason. */
  readonly signal: AbortSignal;
}

/** Options of {@link ServedTranslator.detailed}. */
export interface DetailedOptions extends ServedOptions {
  /** Number of hypotheses for each text, the best included; fewer may come. */
  readonly hypotheses: number;
  /** Whether to return attention, if the translator can. */
  readonly attention: boolean;
}

/** A token of a translation. */
export interface ServedToken {
  /** Its text, as it stands in the vocabulary. */
  readonly text: string;
  /** Its log-probability. */
  readonly score: number;
}

/** One translation among several of a text. */
export interface ServedHypothesis {
  /** The translation. */
  readonly text: string;
  /** Score that the hypotheses are ordered by; null if the translator has none. */
  readonly score: number | null;
  /** The tokens with their scores; empty if the translator does not give them. */
  readonly tokens: readonly ServedToken[];
}

/** A word and the tokens that it consists of. */
export interface ServedWord {
  /** As a reader sees it. */
  readonly text: string;
  /** Indices of its tokens. */
  readonly tokens: readonly number[];
}

/** How much each token of a translation attends to each token of its source. */
export interface ServedAttention {
  /** The tokens of the source, as they stand in the vocabulary. */
  readonly sourceTokens: readonly string[];
  /** The tokens of the translation. */
  readonly targetTokens: readonly string[];
  /**
   * `[targetTokens.length][sourceTokens.length]`; a row sums to 1, less what it attends to special
   * tokens.
   */
  readonly weights: readonly (readonly number[])[];
  /** The words of the source, punctuation included. */
  readonly sourceWords: readonly ServedWord[];
  /** The words of the translation. */
  readonly targetWords: readonly ServedWord[];
}

/** A text's translation with what is known about it. */
export interface ServedTranslation {
  /** The best first; at least one. */
  readonly hypotheses: readonly ServedHypothesis[];
  /** Of the best hypothesis; null if not asked for, or if the translator does not give it. */
  readonly attention: ServedAttention | null;
}

/**
 * A loaded model as the server uses it. Its texts are single lines; calls may overlap, and an
 * implementation may decode those together.
 */
export interface ServedTranslator {
  /** Splits each line, in order, into parts that the model accepts; usually one. */
  split(lines: readonly string[], options: ServedOptions): Promise<readonly (readonly string[])[]>;
  /** Translates each text, in order. */
  translate(texts: readonly string[], options: ServedOptions): Promise<readonly string[]>;
  /** Translates each text, in order, with hypotheses, scores and attention. */
  detailed(
    texts: readonly string[],
    options: DetailedOptions,
  ): Promise<readonly ServedTranslation[]>;
  /** Pieces of the translation as they are decoded; together they are the translation. */
  stream(text: string, options: ServedOptions): AsyncIterable<string>;
  /** Frees its memory. The server calls it once, after all other calls have ended. */
  dispose(): void | Promise<void>;
}
