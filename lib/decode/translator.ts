/** Translation of texts with a trained model. */
import { readLines, type TextLine } from '../data/reading/lineReader.js';
import { checkSource, nameOfSource, type ByteSource } from '../data/reading/byteSource.js';
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import {
  checkTokenizer,
  checkTokenizerFits,
  type Tokenizer,
} from '../data/tokenizers/tokenizer.js';
import { writeFileAtomically } from '../io/atomicFile.js';
import { loadModel, type LoadModelOptions } from '../io/checkpoint.js';
import { checkpointFault } from '../io/safetensorsHeader.js';
import { modelVocabulary } from '../nn/model/modelVocabulary.js';
import type { Transformer } from '../nn/model/transformer.js';
import { TorchError } from '../runtime/errors.js';
import {
  checkArray,
  checkChoice,
  checkObject,
  checkOptions,
  checkPath,
  checkRequiredOptions,
  checkSignal,
  checkString,
  checkStrings,
  describe,
  isIterable,
} from '../runtime/arguments.js';
import { checkDevice } from '../tensor/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkModel } from '../nn/model/checkModel.js';
import {
  LineTally,
  numberedLines,
  translateInWindows,
  type TranslatedLine,
} from './lineTranslation.js';
import { decodingPrecisions, type DecodingPrecision } from './native/preparedModel.js';
import { checkOutputFile } from './outputFile.js';
import { nothing, outputsOf, tokensOf, translationsOf, type FoundText } from './foundTexts.js';
import { sourceLimit } from './positionLimit.js';
import { prepareTexts, type PreparedText, type RefusedText } from './prepareTexts.js';
import { searchOptionNames } from './decodingOptions.js';
import {
  SequenceGenerator,
  type GeneratedSequence,
  type GenerateOptions,
} from './sequenceGenerator.js';
import type { SentenceSplitter } from './splitSentences.js';
import { streamText } from './textStream.js';
import { TextTooLongError } from './textTooLong.js';
import {
  checkLineOptions,
  checkSplit,
  isSplitting,
  type LineSettings,
} from './translateOptions.js';
import type {
  DetailedOptions,
  LineOptions,
  LineReport,
  SplitOptions,
  StreamOptions,
  TranslatedToken,
  TranslateOptions,
  Translation,
} from './translation.js';

/** Options of {@link Translator}. */
export interface TranslatorOptions {
  /** The tokenizer that the model was trained with, for source and target. */
  tokenizer: Tokenizer;
  /** Ids of pad, bos and eos that the model was trained with. */
  specialIds: SpecialIds;
  /** How native decoding stores the weights, see {@link SequenceGeneratorOptions}. Default `'float32'`. */
  precision?: DecodingPrecision | undefined;
}

/** Options of {@link Translator.load}. */
export interface LoadTranslatorOptions extends LoadModelOptions {
  /** How native decoding stores the weights, see {@link SequenceGeneratorOptions}. Default `'float32'`. */
  precision?: DecodingPrecision | undefined;
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
  #closing: Promise<void> | null = null;
  /** Calls that have not returned, and iterators that have begun. */
  #running = 0;
  #onIdle = (): void => undefined;

  /**
   * Creates a translator for a model in memory; {@link Translator.load} loads one from a folder.
   * @throws TypeError if an argument is invalid
   * @throws RangeError if the tokenizer or the ids do not fit the model: a model may have more ids
   *   than the tokenizer, which are then never generated, but not fewer, and source and target must
   *   have the same vocabulary size
   * @throws TorchError ERR_DISPOSED if the model has been disposed of
   */
  constructor(model: Transformer, options: TranslatorOptions) {
    const names = ['tokenizer', 'specialIds', 'precision'];
    checkModel('Translator', model);
    checkRequiredOptions('Translator', options, names, 'tokenizer and specialIds');
    const { tokenizer, specialIds, precision } = options;
    checkTokenizer('Translator', tokenizer);
    if (precision !== undefined) {
      checkChoice('Translator', 'precision', precision, decodingPrecisions);
    }
    const vocabSize = oneVocabulary(model);
    checkSpecialIds(specialIds, vocabSize, 'Translator');
    checkTokenizerFits('Translator', tokenizer, vocabSize);
    this.model = model;
    this.tokenizer = tokenizer;
    const { pad, bos, eos } = specialIds;
    this.specialIds = { pad, bos, eos };
    // An id without a token in the tokenizer could not be shown.
    const never = tokenizer.unusedIds(vocabSize);
    const { specialIds: ids } = this;
    this.#generator = new SequenceGenerator(model, { specialIds: ids, never, precision });
  }

  /**
   * Loads a model folder, or the best model of a run folder (the last one if there is no best).
   *
   * @param options `device`: default `'cpu'`. `model`: the model to load the weights into, as for
   *   `loadModel`; the translator's {@link Translator.dispose} frees it. `precision`: as for the
   *   constructor
   * @throws TorchError ERR_CHECKPOINT naming the file and the fault, also if the folder has no
   *   tokenizer or no special ids
   */
  static async load(folder: string, options: LoadTranslatorOptions = {}): Promise<Translator> {
    const owner = 'Translator.load';
    checkPath(owner, 'folder', folder);
    checkOptions(owner, options, ['device', 'model', 'precision']);
    const { device, model: given, precision } = options;
    if (precision !== undefined) checkChoice(owner, 'precision', precision, decodingPrecisions);
    if (device !== undefined) checkDevice(owner, 'device', device);
    if (given !== undefined) checkModel(owner, given);
    const {
      model,
      tokenizer,
      config,
      folder: found,
    } = await loadModel(folder, {
      device,
      model: given,
    });
    try {
      if (tokenizer === null) {
        throw checkpointFault(found, 'it has no tokenizer.json: save the model with its tokenizer');
      }
      if (config.specialIds === null) {
        throw checkpointFault(found, 'config.json has no specialIds: save the model with them');
      }
      return new Translator(model, { tokenizer, specialIds: config.specialIds, precision });
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
    checkOptions(owner, options, [...translateOptionNames, 'split']);
    const { split, ...search } = options;
    const outputs = await this.#whileAlive(owner, async () => {
      const prepared = await this.#prepareAll(owner, texts, split, options.signal);
      return outputsOf(this.tokenizer, await this.#search(owner, nameOfText, prepared, search));
    });
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
    checkOptions(owner, options, [...detailedOptionNames, 'split']);
    const { split, ...search } = options;
    return this.#whileAlive(owner, async () => {
      const prepared = await this.#prepareAll(owner, texts, split, options.signal);
      const found = await this.#search(owner, nameOfText, prepared, {
        ...search,
        scores: true,
      });
      return translationsOf(this.tokenizer, found, isSplitting(split));
    });
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
    checkOptions(
      owner,
      options,
      translateOptionNames.filter((name) => name !== 'batchSize'),
    );
    checkSignal(owner, 'signal', options.signal);
    return this.#iterateAlive(owner, () =>
      streamText(this.tokenizer, options.signal, async (signal, onTokens) => {
        const prepared = await this.#prepareAll(owner, [text], undefined, options.signal);
        const [found] = await this.#search(owner, nameOfText, prepared, {
          ...options,
          signal,
          onTokens: (_index, certain) => {
            onTokens(certain);
          },
        });
        return found?.pieces[0]?.targets[0]?.ids ?? [];
      }),
    );
  }

  /**
   * Translates lines of any number, in constant memory: it reads some lines ahead, translates a window of
   * them together, and reads on when their outputs have been taken. An empty line gives an empty output.
   *
   * ```ts
   * for await (const output of translator.translateLines(lines)) console.log(output);
   * ```
   *
   * Leaving the loop early ends the translation and closes the source.
   *
   * @param lines an array, a generator, `readline`'s interface, or any other iterable of strings
   * @throws the errors of {@link Translator.translate} and of the source, from the iterator, after the
   *   outputs of the lines before; they name the line, counted from 1
   */
  translateLines(
    lines: Iterable<string> | AsyncIterable<string>,
    options: LineOptions = {},
  ): AsyncIterableIterator<string> {
    const owner = 'Translator.translateLines';
    if (!isIterable(lines)) {
      throw new TypeError(
        `${owner}: lines must be an iterable of strings, got ${describe(lines)}` +
          (typeof lines === 'string' ? '; for one text use translate(text)' : ''),
      );
    }
    const settings = checkLineOptions(owner, options, translateOptionNames);
    const nameOf = (line: number) => `line ${line}`;
    const source = () => numberedLines(owner, lines);
    return this.#iterateAlive(owner, () => this.#flatLines(owner, source, settings, nameOf));
  }

  /**
   * Translates the lines of a file to another, in constant memory. The output has a line for each of the
   * input, each with a line end; line ends within an output become spaces. It is written atomically: until
   * all is translated, and after any failure, `output` is what it was before.
   *
   * @param input path, `file:` URL or bytes, with the rules of training data: UTF-8, plain or gzip, line
   *   ends LF, CRLF or CR
   * @param output path; a file that exists is replaced
   * @throws RangeError if `output` is the input
   * @throws TorchError ERR_DATA naming file and line if the input cannot be read or is not UTF-8;
   *   ERR_CHECKPOINT naming the output if it cannot be written
   * @throws the errors of {@link Translator.translate}, with the line
   */
  async translateFile(
    input: ByteSource,
    output: string,
    options: LineOptions = {},
  ): Promise<LineReport> {
    const owner = 'Translator.translateFile';
    checkSource(owner, input);
    checkPath(owner, 'output', output);
    const settings = checkLineOptions(owner, options, translateOptionNames);
    return this.#whileAlive(owner, async () => {
      settings.signal?.throwIfAborted();
      await checkOutputFile(owner, input, output);
      const name = nameOfSource(input);
      const source = () => readLines(input, name);
      const nameOf = (line: number) => `line ${line} of ${name}`;
      const tally = new LineTally();
      try {
        await writeFileAtomically(output, async (sink) => {
          for await (const group of this.#lines(owner, source, settings, nameOf)) {
            await sink(Buffer.from(group.map((line) => `${oneLine(line.output)}\n`).join('')));
            tally.add(group);
            settings.onProgress?.(tally.report());
          }
        });
      } catch (error) {
        settings.signal?.throwIfAborted();
        throw error;
      }
      return tally.report();
    });
  }

  /**
   * The lines of a source with their outputs, in groups, for the command line.
   *
   * @param nameOf what messages call a line
   * @internal
   */
  translateTextLines(
    source: () => AsyncIterable<readonly TextLine[]>,
    options: LineOptions,
    nameOf: (line: number) => string,
  ): AsyncGenerator<TranslatedLine<string>[], void, undefined> {
    const owner = 'Translator.translateLines';
    const settings = checkLineOptions(owner, options, translateOptionNames);
    return this.#iterateAlive(owner, () => this.#lines(owner, source, settings, nameOf));
  }

  /** {@link translateTextLines} with all details of the outputs. @internal */
  translateTextLinesDetailed(
    source: () => AsyncIterable<readonly TextLine[]>,
    options: LineOptions & DetailedOptions,
    nameOf: (line: number) => string,
  ): AsyncGenerator<TranslatedLine<Translation>[], void, undefined> {
    const owner = 'Translator.translateLines';
    const settings = checkLineOptions(owner, options, detailedOptionNames);
    return this.#iterateAlive(owner, () => this.#detailedLines(owner, source, settings, nameOf));
  }

  /**
   * The encoder's output for each text: a Tensor `[tokens, dModel]` in float32, with the states of bos
   * and eos. The caller disposes of them. It runs off the event loop.
   *
   * @throws TypeError, TorchError as {@link Translator.translate}; TypeError if the model has modules of
   *   its own
   * @throws RangeError if a text has no token
   */
  async encode(
    texts: readonly string[],
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Tensor[]> {
    const owner = 'Translator.encode';
    checkOptions(owner, options, ['signal']);
    return this.#whileAlive(owner, async () => {
      const sources = await this.#encode(owner, 'texts', texts, options.signal);
      return this.#generator.encodeFor(owner, nameOfText, sources, options.signal);
    });
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
      const texts = pairs.map(({ source }) => source);
      const sources = await this.#encode(owner, 'pairs', texts, signal);
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
        tokens: tokensOf(this.tokenizer, targets[index] as number[], tokenScores),
        endScore: tokenScores.at(-1) as number,
      }));
    });
  }

  async *#flatLines(
    owner: string,
    source: () => AsyncIterable<readonly TextLine[]>,
    settings: LineSettings,
    nameOf: (line: number) => string,
  ): AsyncGenerator<string, void, undefined> {
    const tally = new LineTally();
    for await (const group of this.#lines(owner, source, settings, nameOf)) {
      for (const { output } of group) yield output;
      tally.add(group);
      settings.onProgress?.(tally.report());
    }
  }

  #lines(
    owner: string,
    source: () => AsyncIterable<readonly TextLine[]>,
    settings: LineSettings,
    nameOf: (line: number) => string,
  ): AsyncGenerator<TranslatedLine<string>[], void, undefined> {
    return this.#windows(owner, source, settings, nameOf, '', (found) =>
      outputsOf(this.tokenizer, found),
    );
  }

  #detailedLines(
    owner: string,
    source: () => AsyncIterable<readonly TextLine[]>,
    given: LineSettings,
    nameOf: (line: number) => string,
  ): AsyncGenerator<TranslatedLine<Translation>[], void, undefined> {
    const settings = { ...given, search: { ...given.search, scores: true } };
    const skipped = { ...nothing, sentences: null };
    const results = (found: readonly FoundText[]) =>
      translationsOf(this.tokenizer, found, given.splitter !== null);
    return this.#windows(owner, source, settings, nameOf, skipped, results);
  }

  async *#windows<T>(
    owner: string,
    source: () => AsyncIterable<readonly TextLine[]>,
    settings: LineSettings,
    nameOf: (line: number) => string,
    skipped: T,
    results: (found: readonly FoundText[]) => Promise<T[]>,
  ): AsyncGenerator<TranslatedLine<T>[], void, undefined> {
    const { splitter, search, signal } = settings;
    // Invalid options are an error without lines too.
    await this.#search(owner, () => '', [], search);
    yield* translateInWindows(
      source(),
      {
        skipped,
        prepare: (texts, cuts) => this.#prepare(texts, splitter, cuts || splitter !== null, signal),
        translate: async (texts, lines) => {
          const name = (index: number) => nameOf((lines[index] as TextLine).number);
          return results(await this.#search(owner, name, texts, search));
        },
        tooLong: ({ number }, { tokens }) => {
          const limit = sourceLimit(this.model);
          return new TextTooLongError(number - 1, tokens, limit, `${owner}: ${nameOf(number)}`);
        },
      },
      settings,
    );
  }

  /** @throws TextTooLongError naming the first text that is too long */
  async #prepareAll(
    owner: string,
    texts: readonly string[],
    split: boolean | SplitOptions | undefined,
    givenSignal: AbortSignal | undefined,
    name = 'texts',
  ): Promise<PreparedText[]> {
    checkStrings(owner, name, texts);
    const splitter = checkSplit(owner, split);
    const signal = checkSignal(owner, 'signal', givenSignal);
    signal?.throwIfAborted();
    const prepared = await this.#prepare(texts, splitter, splitter !== null, signal);
    return prepared.map((text, index) => {
      if (!('tokens' in text)) return text;
      const limit = sourceLimit(this.model);
      throw new TextTooLongError(index, text.tokens, limit, `${owner}: ${name}[${index}]`);
    });
  }

  #prepare(
    texts: readonly string[],
    splitter: SentenceSplitter | null,
    cutsPieces: boolean,
    signal: AbortSignal | undefined,
  ): Promise<(PreparedText | RefusedText)[]> {
    const { tokenizer, specialIds } = this;
    const limit = sourceLimit(this.model);
    return prepareTexts(texts, { tokenizer, specialIds, limit, splitter, cutsPieces, signal });
  }

  /** The targets of each piece of each text; none for an empty one. */
  async #search(
    owner: string,
    nameOf: (index: number) => string,
    texts: readonly PreparedText[],
    options: GenerateOptions,
  ): Promise<FoundText[]> {
    const found = texts.map(({ pieces, separators, isCut }): FoundText => ({
      separators,
      isCut,
      pieces: pieces.map((piece) => ({ ...piece, targets: [] })),
    }));
    const filled = found.flatMap(({ pieces }, index) =>
      pieces.filter(({ source }) => source.length > 0).map((piece) => ({ piece, index })),
    );
    // The longest first, so that at the end no long one is left to be decoded alone.
    filled.sort((a, b) => b.piece.source.length - a.piece.source.length);
    const targets = await this.#generator.generateFor(
      owner,
      (place) => nameOf((filled[place] as { index: number }).index),
      filled.map(({ piece }) => piece.source),
      options,
    );
    filled.forEach(({ piece }, place) => {
      piece.targets = targets[place] as GeneratedSequence[];
    });
    return found;
  }

  /** A failure after a call of `dispose` says so. */
  async #whileAlive<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.#refuseClosed(owner);
    this.#running++;
    try {
      return await work();
    } catch (error) {
      this.#refuseDisposed(owner);
      throw error;
    } finally {
      this.#finishCall();
    }
  }

  /** {@link #whileAlive} for an iterator, from its first value to its end. */
  async *#iterateAlive<T>(
    owner: string,
    iterate: () => AsyncGenerator<T, void, undefined>,
  ): AsyncGenerator<T, void, undefined> {
    this.#refuseClosed(owner);
    this.#running++;
    try {
      yield* iterate();
    } catch (error) {
      this.#refuseDisposed(owner);
      throw error;
    } finally {
      this.#finishCall();
    }
  }

  #finishCall(): void {
    if (--this.#running === 0) this.#onIdle();
  }

  /** Ids of each text with bos and eos; empty if the text has no token. */
  async #encode(
    owner: string,
    name: string,
    texts: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<(readonly number[])[]> {
    const prepared = await this.#prepareAll(owner, texts, undefined, signal, name);
    return prepared.map(({ pieces: [piece] }) => piece?.source ?? []);
  }

  /**
   * Waits for running calls, and for iterators that have begun to end, while new ones are refused; then
   * frees the model's memory. Further calls return the same promise.
   */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      if (this.#running > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
      if (!this.#disposed) this.dispose();
    })();
    return this.#closing;
  }

  /** Frees the model's memory at once; calls that are running fail. */
  dispose(): void {
    this.#disposed = true;
    this.#generator.dispose();
    this.model.dispose();
  }

  #refuseClosed(owner: string): void {
    this.#refuseDisposed(owner);
    if (this.#closing === null) return;
    throw new TorchError(
      'ERR_DISPOSED',
      `${owner}: the translator has been closed; load a new one`,
    );
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

  /** Calls {@link Translator.close} at the end of a block: `await using translator = …`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const ownNames = ['attention', 'nBest', 'scores'];
const translateOptionNames = [
  ...searchOptionNames.filter((name) => !ownNames.includes(name)),
  'batchSize',
];
const detailedOptionNames = [...searchOptionNames.filter((name) => name !== 'scores'), 'batchSize'];

/** What messages call a text of a call. */
function nameOfText(index: number): string {
  return `texts[${index}]`;
}

/** A text on one line. */
function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ');
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
