/** Translation of texts with a trained model. */
import { padSequences } from '../data/batching/batch.js';
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
import { paddingMask } from '../nn/attention/mask.js';
import { modelVocabulary } from '../nn/model/modelVocabulary.js';
import type { Transformer } from '../nn/model/transformer.js';
import { TorchError } from '../runtime/errors.js';
import {
  checkInteger,
  checkOptions,
  checkPath,
  checkRequiredOptions,
  checkSignal,
  checkStrings,
} from '../runtime/arguments.js';
import { checkDevice } from '../tensor/device.js';
import { tidy } from '../tensor/scope.js';
import { checkModel } from '../nn/model/checkModel.js';
import { searchGreedily, type Decoded } from './greedy.js';
import { checkMaxLength, sourceLimit } from './positionLimit.js';

/** Options of {@link Translator}. */
export interface TranslatorOptions {
  /** The tokenizer that the model was trained with, for source and target. */
  tokenizer: Tokenizer;
  /** Ids of pad, bos and eos that the model was trained with. */
  specialIds: SpecialIds;
}

/** Options of {@link Translator.translate}. */
export interface TranslateOptions {
  /** Number of texts decoded together. Default 32. */
  batchSize?: number | undefined;
  /** Maximum tokens of an output, including the end token. Default: length of the position table. */
  maxLength?: number | undefined;
  /** Aborts between steps; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
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
   */
  constructor(index: number, tokens: number | null, limit: number) {
    const size =
      tokens === null
        ? `more than ${maxTextLength.toLocaleString('en-US')} characters`
        : `${tokens} tokens (with bos and eos), the model's position table ${limit}`;
    super(`Translator.translate: texts[${index}] has ${size}; split the text`);
    this.name = 'TextTooLongError';
    this.index = index;
    this.tokens = tokens;
    this.limit = limit;
  }
}

/**
 * Translates texts with greedy decoding.
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
  /** Ids that are never generated: pad, bos, and ids without a token in the tokenizer. */
  readonly #forbidden: readonly number[];
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
    const unknown = tokenizer.unusedIds(vocabSize).filter((id) => id !== eos);
    this.#forbidden = [...new Set([pad, bos, ...unknown])];
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
   * are ignored.
   *
   * It yields to the event loop between steps; once the promise settles, the number of live tensors is
   * unchanged.
   *
   * @throws TypeError if a text is not a string, or the model is in training mode
   * @throws TextTooLongError naming the text's index if it has more tokens than the position table,
   *   or more than 100,000 characters
   * @throws TorchError ERR_NON_FINITE naming the text's index if its probabilities are NaN or
   *   infinite; ERR_DISPOSED after {@link Translator.dispose}, or if it is called in the meantime
   */
  async translate(texts: readonly string[], options: TranslateOptions = {}): Promise<string[]> {
    this.#refuseDisposed();
    try {
      return await this.#translate(texts, options);
    } catch (error) {
      this.#refuseDisposed();
      throw error;
    }
  }

  async #translate(texts: readonly string[], options: TranslateOptions): Promise<string[]> {
    const owner = 'Translator.translate';
    checkStrings(owner, 'texts', texts);
    checkOptions(owner, options, ['batchSize', 'maxLength', 'signal']);
    const { batchSize = 32, signal } = options;
    checkInteger(owner, 'batchSize', batchSize, 1);
    checkSignal(owner, 'signal', signal);
    const maxLength = checkMaxLength(owner, options.maxLength, this.model);
    signal?.throwIfAborted();

    const sources = await this.#encode(texts, signal);
    const filled = sources.flatMap(({ length }, index) => (length > 0 ? [index] : []));
    // Batching rows of similar length avoids padding.
    filled.sort((a, b) => (sources[a] as number[]).length - (sources[b] as number[]).length);
    const outputs = texts.map(() => '');
    for (let start = 0; start < filled.length; start += batchSize) {
      const indices = filled.slice(start, start + batchSize);
      const decoded = await this.#decode(
        indices.map((index) => sources[index] as number[]),
        (row) => `texts[${indices[row]}]`,
        maxLength,
        signal,
      );
      const decodedTexts = await this.tokenizer.decodeBatch(decoded.map(({ ids }) => ids));
      indices.forEach((index, row) => {
        outputs[index] = decodedTexts[row] as string;
      });
    }
    return outputs;
  }

  /** Ids of each text with bos and eos; empty if the text has no token. */
  async #encode(texts: readonly string[], signal: AbortSignal | undefined): Promise<number[][]> {
    const limit = sourceLimit(this.model);
    const special = new Set<number>(Object.values(this.specialIds));
    const large = texts.findIndex((text) => text.length > maxTextLength);
    if (large >= 0) throw new TextTooLongError(large, null, limit);
    const blankless = texts.map((text) => (isBlank(text) ? '' : text));
    const encoded = await this.tokenizer.encodeBatch(blankless, { signal });
    return encoded.map((all, index) => {
      const ids = all.filter((id) => !special.has(id));
      if (ids.length === 0) return [];
      const framed = frame(ids, this.specialIds);
      if (framed.length > limit) {
        throw new TextTooLongError(index, framed.length, limit);
      }
      return framed;
    });
  }

  async #decode(
    sources: readonly number[][],
    nameOf: (row: number) => string,
    maxLength: number,
    signal: AbortSignal | undefined,
  ): Promise<Decoded[]> {
    const { pad, ...search } = this.specialIds;
    const device = this.model.generator.proj.weight.device;
    const [src, srcMask] = tidy(() => {
      const ids = padSequences(sources, pad, device);
      return [ids, paddingMask(ids, pad)] as const;
    });
    try {
      return await searchGreedily(this.model, src, srcMask, {
        owner: 'Translator.translate',
        nameOf,
        ...search,
        forbidden: this.#forbidden,
        maxLength,
        signal,
      });
    } finally {
      src.dispose();
      srcMask.dispose();
    }
  }

  /** Frees the model's memory. */
  dispose(): void {
    this.#disposed = true;
    this.model.dispose();
  }

  #refuseDisposed(): void {
    if (!this.#disposed) return;
    throw new TorchError(
      'ERR_DISPOSED',
      'Translator.translate: the translator has been disposed of; load a new one',
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
