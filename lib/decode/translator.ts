/** Translation of texts with a trained model. */
import { frame } from '../data/encodePairs.js';
import { isBlank, maxTextLength } from '../data/text.js';
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import {
  checkTokenizer,
  checkTokenizerFits,
  type Tokenizer,
} from '../data/tokenizers/tokenizer.js';
import { loadModel, type LoadModelOptions } from '../io/checkpoint.js';
import { checkpointFault } from '../io/safetensorsHeader.js';
import { modelVocabulary } from '../nn/model/modelVocabulary.js';
import type { Transformer } from '../nn/model/transformer.js';
import { TorchError } from '../runtime/errors.js';
import {
  checkArray,
  checkObject,
  checkOptions,
  checkPath,
  checkRequiredOptions,
  checkSignal,
  checkString,
  checkStrings,
} from '../runtime/arguments.js';
import { checkDevice } from '../tensor/device.js';
import { checkModel } from '../nn/model/checkModel.js';
import { sourceLimit } from './positionLimit.js';
import { searchOptionNames, type DecodingOptions } from './decodingOptions.js';
import {
  SequenceGenerator,
  type GeneratedSequence,
  type GenerateOptions,
} from './sequenceGenerator.js';

/** Options of {@link Translator}. */
export interface TranslatorOptions {
  /** The tokenizer that the model was trained with, for source and target. */
  tokenizer: Tokenizer;
  /** Ids of pad, bos and eos that the model was trained with. */
  specialIds: SpecialIds;
}

/** Options of {@link Translator.translate}: those of a search, by default greedy. */
export interface TranslateOptions extends Omit<DecodingOptions, 'attention' | 'nBest' | 'scores'> {
  /** Number of texts of this call that are decoded together. Default 32. */
  batchSize?: number | undefined;
}

/** Options of {@link Translator.translateDetailed}. */
export interface DetailedOptions extends Omit<DecodingOptions, 'scores'> {
  /** Number of texts of this call that are decoded together. Default 32. */
  batchSize?: number | undefined;
}

/** Options of {@link Translator.translateStreaming}. */
export type StreamOptions = Omit<TranslateOptions, 'batchSize'>;

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
  /** Log-probability of the end token; null if it was cut off. */
  readonly endScore: number | null;
  /** For each of `tokens` a weight for each of the text's `sourceTokens`; null unless asked for. */
  readonly attention: readonly (readonly number[])[] | null;
}

/** The outputs for a text, see {@link Translator.translateDetailed}. */
export interface Translation {
  /** The best output. */
  readonly text: string;
  /** The text's tokens as in the vocabulary, with bos and eos. */
  readonly sourceTokens: readonly string[];
  /** The best first; empty for an empty text. */
  readonly hypotheses: readonly TranslationHypothesis[];
}

/**
 * Thrown for a text that exceeds the model's position table, or has more than 100,000 characters and is
 * not tokenized.
 */
export class TextTooLongError extends RangeError {
  /** Index of the text, from 0. */
  readonly index: number;
  /** Its number of tokens, including bos and eos; null if it was not tokenized. */
  readonly tokens: number | null;
  /** Maximum number of tokens of the position table. */
  readonly limit: number;

  /**
   * @param index index of the text, from 0
   * @param tokens its number of tokens, including bos and eos; null if unknown
   * @param limit maximum number of tokens of the position table
   * @param texts the array of texts, for the message
   */
  constructor(
    index: number,
    tokens: number | null,
    limit: number,
    texts = 'Translator.translate: texts',
  ) {
    const size =
      tokens === null
        ? `more than ${maxTextLength.toLocaleString('en-US')} characters`
        : `${tokens} tokens (with bos and eos), the model's position table ${limit}`;
    super(`${texts}[${index}] has ${size}; split the text`);
    this.name = 'TextTooLongError';
    this.index = index;
    this.tokens = tokens;
    this.limit = limit;
  }
}

/**
 * Translates texts: greedily, with beam search or by sampling. Calls at the same time are decoded
 * together; see {@link SequenceGenerator} for what is decoded in native code.
 *
 * ```ts
 * const translator = await Translator.load('runs/a');
 * const [output] = await translator.translate(['How are you?']);
 * translator.dispose();
 * ```
 */
export class Translator {
  /** Must be in eval mode to translate; {@link Translator.dispose} frees it. */
  readonly model: Transformer;
  /** Converts texts to ids and back. */
  readonly tokenizer: Tokenizer;
  /** Ids of pad, bos and eos. */
  readonly specialIds: SpecialIds;
  readonly #generator: SequenceGenerator;
  #disposed = false;

  /**
   * Creates a translator for a model in memory; {@link Translator.load} loads one from a folder.
   * @throws TypeError if an argument is invalid
   * @throws RangeError if the tokenizer or the ids do not fit the model: a model may have more ids
   *   than the tokenizer, which are then never generated, but not fewer, and source and target must
   *   have the same vocabulary size
   * @throws TorchError ERR_DISPOSED if the model has been disposed of
   */
  constructor(model: Transformer, options: TranslatorOptions) {
    const names = ['tokenizer', 'specialIds'];
    checkModel('Translator', model);
    checkRequiredOptions('Translator', options, names, 'tokenizer and specialIds');
    const { tokenizer, specialIds } = options;
    checkTokenizer('Translator', tokenizer);
    const vocabSize = oneVocabulary(model);
    checkSpecialIds(specialIds, vocabSize, 'Translator');
    checkTokenizerFits('Translator', tokenizer, vocabSize);
    this.model = model;
    this.tokenizer = tokenizer;
    const { pad, bos, eos } = specialIds;
    this.specialIds = { pad, bos, eos };
    // An id without a token in the tokenizer could not be shown.
    const never = tokenizer.unusedIds(vocabSize);
    this.#generator = new SequenceGenerator(model, { specialIds: this.specialIds, never });
  }

  /**
   * Loads a model folder, or the best model of a run folder (the last one if there is no best).
   *
   * @param options `device`: default `'cpu'`. `model`: the model to load the weights into, as for
   *   `loadModel`; the translator's {@link Translator.dispose} frees it
   * @throws TorchError ERR_CHECKPOINT naming the file and the fault, also if the folder has no
   *   tokenizer or no special ids
   */
  static async load(folder: string, options: LoadModelOptions = {}): Promise<Translator> {
    const owner = 'Translator.load';
    checkPath(owner, 'folder', folder);
    checkOptions(owner, options, ['device', 'model']);
    const { device, model: given } = options;
    if (device !== undefined) checkDevice(owner, 'device', device);
    if (given !== undefined) checkModel(owner, given);
    const { model, tokenizer, config, folder: found } = await loadModel(folder, options);
    try {
      if (tokenizer === null) {
        throw checkpointFault(found, 'it has no tokenizer.json: save the model with its tokenizer');
      }
      if (config.specialIds === null) {
        throw checkpointFault(found, 'config.json has no specialIds: save the model with them');
      }
      return new Translator(model, { tokenizer, specialIds: config.specialIds });
    } catch (error) {
      if (given === undefined) model.dispose();
      throw error;
    }
  }

  /**
   * Translates each text; the outputs are in the order of the texts. An empty text (or one of only
   * white space and zero-width characters) gives an empty output. Special tokens spelled out in a text
   * are ignored. A text gives the same output alone and in any batch.
   *
   * Decoding runs off the event loop; once the promise settles, the number of live tensors is
   * unchanged.
   *
   * @throws TypeError if a text is not a string, or the model is in training mode
   * @throws TextTooLongError naming the text's index if it has more tokens than the position table,
   *   or more than 100,000 characters
   * @throws TorchError ERR_NON_FINITE naming the text's index if its probabilities are NaN or
   *   infinite; ERR_DISPOSED after {@link Translator.dispose}, or if it is called in the meantime
   */
  translate(text: string, options?: TranslateOptions): Promise<string>;
  translate(texts: readonly string[], options?: TranslateOptions): Promise<string[]>;
  async translate(
    given: string | readonly string[],
    options: TranslateOptions = {},
  ): Promise<string | string[]> {
    const owner = 'Translator.translate';
    const texts = typeof given === 'string' ? [given] : given;
    const names = ['attention', 'nBest', 'scores'];
    checkOptions(owner, options, [
      ...searchOptionNames.filter((name) => !names.includes(name)),
      'batchSize',
    ]);
    const found = await this.#search(owner, texts, options);
    const outputs = await this.tokenizer.decodeBatch(found.map(({ best }) => best?.ids ?? []));
    return typeof given === 'string' ? (outputs[0] as string) : outputs;
  }

  /**
   * Translates each text like {@link Translator.translate}, and returns scores, tokens, further
   * outputs (`nBest`) and attention weights (`attention`).
   *
   * @throws the errors of {@link Translator.translate}; TypeError if the model has modules of its own
   */
  async translateDetailed(
    texts: readonly string[],
    options: DetailedOptions = {},
  ): Promise<Translation[]> {
    const owner = 'Translator.translateDetailed';
    checkOptions(owner, options, [
      ...searchOptionNames.filter((name) => name !== 'scores'),
      'batchSize',
    ]);
    const found = await this.#search(owner, texts, { ...options, scores: true });
    return Promise.all(
      found.map(async ({ source, targets }) => {
        const decoded = await this.tokenizer.decodeBatch(targets.map(({ ids }) => ids));
        const hypotheses = targets.map((target, index) =>
          this.#hypothesis(decoded[index] as string, target),
        );
        const sourceTokens = source.map((id) => this.#token(id));
        return { text: hypotheses[0]?.text ?? '', sourceTokens, hypotheses };
      }),
    );
  }

  /**
   * Translates a text and yields its output in pieces as they are decoded; together they are the
   * output of {@link Translator.translate}. With a beam, a piece comes when all hypotheses agree.
   *
   * ```ts
   * for await (const piece of translator.translateStreaming('How are you?')) process.stdout.write(piece);
   * ```
   *
   * Leaving the loop early aborts the search.
   *
   * @throws the errors of {@link Translator.translate}, from the iterator
   */
  translateStreaming(text: string, options: StreamOptions = {}): AsyncIterableIterator<string> {
    const owner = 'Translator.translateStreaming';
    checkString(owner, 'text', text);
    const names = ['attention', 'nBest', 'scores'];
    checkOptions(
      owner,
      options,
      searchOptionNames.filter((name) => !names.includes(name)),
    );
    checkSignal(owner, 'signal', options.signal);
    return this.#stream(owner, text, options);
  }

  /**
   * The log-probability of given translations (forced decoding), eos included.
   *
   * @throws TypeError if a pair is not `{ source, target }` of strings, or a source is empty
   * @throws TextTooLongError, TorchError as {@link Translator.translate}
   */
  async score(
    pairs: readonly { readonly source: string; readonly target: string }[],
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<{ score: number; tokens: TranslatedToken[]; endScore: number }[]> {
    const owner = 'Translator.score';
    checkArray(owner, 'pairs', pairs, 'an array of { source, target }');
    checkOptions(owner, options, ['signal']);
    pairs.forEach((pair, index) => {
      checkObject(owner, `pairs[${index}]`, pair, '{ source, target }');
      checkString(owner, `pairs[${index}].source`, pair.source);
      checkString(owner, `pairs[${index}].target`, pair.target);
    });
    return this.#whileAlive(owner, async () => {
      const { signal } = options;
      const sources = await this.#encode(
        owner,
        'pairs',
        pairs.map(({ source }) => source),
        signal,
      );
      const empty = sources.findIndex(({ length }) => length === 0);
      if (empty >= 0) throw new TypeError(`${owner}: pairs[${empty}].source is empty`);
      const special = new Set<number>(Object.values(this.specialIds));
      const encoded = await this.tokenizer.encodeBatch(
        pairs.map(({ target }) => target),
        { signal },
      );
      const targets = encoded.map((ids) => ids.filter((id) => !special.has(id)));
      const scores = await this.#generator.score(
        sources.map((source, index) => ({ source, target: targets[index] as number[] })),
        { signal },
      );
      return scores.map(({ score, tokenScores }, index) => ({
        score,
        tokens: this.#tokens(targets[index] as number[], tokenScores),
        endScore: tokenScores.at(-1) as number,
      }));
    });
  }

  #hypothesis(text: string, target: GeneratedSequence): TranslationHypothesis {
    const { ids, ended, score, tokenScores, attention } = target;
    return {
      text,
      score,
      ended,
      tokens: this.#tokens(ids, tokenScores),
      endScore: ended ? (tokenScores.at(-1) ?? null) : null,
      attention: attention === null ? null : attention.slice(0, ids.length),
    };
  }

  #tokens(ids: readonly number[], scores: readonly number[]): TranslatedToken[] {
    return ids.map((id, index) => ({ token: this.#token(id), score: scores[index] as number }));
  }

  #token(id: number): string {
    return this.tokenizer.tokenOf(id) ?? `<${id}>`;
  }

  async *#stream(
    owner: string,
    text: string,
    options: StreamOptions,
  ): AsyncGenerator<string, void, undefined> {
    const stop = new AbortController();
    const signal =
      options.signal === undefined ? stop.signal : AbortSignal.any([options.signal, stop.signal]);
    let ids: readonly number[] = [];
    let wake = (): void => undefined;
    let isDone = false;
    const search = this.#search(owner, [text], {
      ...options,
      signal,
      onTokens: (_index, certain) => {
        ids = certain;
        wake();
      },
    }).finally(() => {
      isDone = true;
      wake();
    });
    // It is awaited below; an abort in the meantime must not count as unhandled.
    search.catch(() => undefined);
    let written = '';
    try {
      while (!isDone) {
        const seen = ids;
        if (seen.length > 0) {
          const certain = wholeCharacters(await this.tokenizer.decode([...seen]));
          // A token may change the text before it; then the pieces wait for what becomes of it.
          if (certain.startsWith(written) && certain.length > written.length) {
            yield certain.slice(written.length);
            written = certain;
          }
        }
        if (seen === ids && !isDone) await new Promise<void>((resolve) => (wake = resolve));
      }
      const [found] = await search;
      const whole = await this.tokenizer.decode([...(found?.best?.ids ?? [])]);
      const rest = whole.startsWith(written) ? whole.slice(written.length) : '';
      if (rest !== '') yield rest;
    } finally {
      stop.abort();
    }
  }

  /** The targets of each text; none for an empty one. */
  async #search(
    owner: string,
    texts: readonly string[],
    options: GenerateOptions,
  ): Promise<{ source: number[]; targets: GeneratedSequence[]; best?: GeneratedSequence }[]> {
    return this.#whileAlive(owner, async () => {
      checkStrings(owner, 'texts', texts);
      const signal = checkSignal(owner, 'signal', options.signal);
      signal?.throwIfAborted();
      const sources = await this.#encode(owner, 'texts', texts, signal);
      const filled = sources.flatMap(({ length }, index) => (length > 0 ? [index] : []));
      // The longest first, so that at the end no long one is left to be decoded alone.
      filled.sort((a, b) => (sources[b] as number[]).length - (sources[a] as number[]).length);
      const found = await this.#generator.generateFor(
        owner,
        (index) => `texts[${filled[index]}]`,
        filled.map((index) => sources[index] as number[]),
        options,
      );
      const results = sources.map(
        (source): { source: number[]; targets: GeneratedSequence[]; best?: GeneratedSequence } => ({
          source,
          targets: [],
        }),
      );
      filled.forEach((index, place) => {
        const targets = found[place] as GeneratedSequence[];
        const [best] = targets;
        const source = sources[index] as number[];
        results[index] = best === undefined ? { source, targets } : { source, targets, best };
      });
      return results;
    });
  }

  /** A failure after a call of `dispose` says so. */
  async #whileAlive<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.#refuseDisposed(owner);
    try {
      return await work();
    } catch (error) {
      this.#refuseDisposed(owner);
      throw error;
    }
  }

  /** Ids of each text with bos and eos; empty if the text has no token. */
  async #encode(
    owner: string,
    name: string,
    texts: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<number[][]> {
    const limit = sourceLimit(this.model);
    const special = new Set<number>(Object.values(this.specialIds));
    const large = texts.findIndex((text) => text.length > maxTextLength);
    if (large >= 0) throw new TextTooLongError(large, null, limit, `${owner}: ${name}`);
    const blankless = texts.map((text) => (isBlank(text) ? '' : text));
    const encoded = await this.tokenizer.encodeBatch(blankless, { signal });
    return encoded.map((all, index) => {
      const ids = all.filter((id) => !special.has(id));
      if (ids.length === 0) return [];
      const framed = frame(ids, this.specialIds);
      if (framed.length > limit) {
        throw new TextTooLongError(index, framed.length, limit, `${owner}: ${name}`);
      }
      return framed;
    });
  }

  /** Frees the model's memory. */
  dispose(): void {
    this.#disposed = true;
    this.#generator.dispose();
    this.model.dispose();
  }

  #refuseDisposed(owner: string): void {
    if (!this.#disposed) return;
    throw new TorchError(
      'ERR_DISPOSED',
      `${owner}: the translator has been disposed of; load a new one`,
    );
  }

  /**
   * Calls {@link Translator.dispose} at the end of a block: `using translator = await
   * Translator.load(…)`.
   */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * The vocabulary size shared by source and target, since one tokenizer is used for both.
 * @throws RangeError if the sizes differ
 */
function oneVocabulary(model: Transformer): number {
  const { src, tgt } = modelVocabulary(model);
  if (src === tgt) return tgt;
  throw new RangeError(
    `Translator: the model has a vocabulary of ${src} for the source and of ${tgt} for the target, ` +
      'but one tokenizer is used for both; decode such a model with greedy(…) and two tokenizers',
  );
}

/** A text without the incomplete character at its end, which the next token completes. */
function wholeCharacters(text: string): string {
  return text.replace(/\uFFFD+$/u, '');
}
