/** Search for targets of sources of token ids, in native code where the model allows it. */
import { setMaxListeners } from 'node:events';
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import { padSequences } from '../data/batching/batch.js';
import { paddingMask } from '../nn/attention/mask.js';
import { checkModel } from '../nn/model/checkModel.js';
import { modelVocabulary } from '../nn/model/modelVocabulary.js';
import type { Transformer } from '../nn/model/transformer.js';
import {
  checkArray,
  checkChoice,
  checkInteger,
  checkOptions,
  checkRequiredOptions,
  checkSignal,
  orDefault,
} from '../runtime/arguments.js';
import { callAsync } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { searchGreedily } from './greedy.js';
import { NativeGeneration, type FoundTarget } from './native/generation.js';
import { examineModel, type DecodableModel } from './native/decodableModel.js';
import {
  decodingPrecisions,
  forgetPreparedModel,
  preparedModel,
  type DecodingPrecision,
} from './native/preparedModel.js';
import { nonFiniteFault } from './nonFinite.js';
import { sourceLimit, targetLimit } from './positionLimit.js';
import {
  checkIdList,
  checkSearch,
  searchOptionNames,
  type CheckedSearch,
  type SearchLimits,
  type DecodingOptions,
} from './decodingOptions.js';

/** Options of {@link SequenceGenerator}. */
export interface SequenceGeneratorOptions {
  /** Ids of pad, bos and eos that the model was trained with. */
  specialIds: SpecialIds;
  /** Other ids that are never generated; pad and bos never are. Default: none. */
  never?: readonly number[] | undefined;
  /**
   * How native decoding stores the weights of linear layers: `'float32'` (default), `'bfloat16'` (half
   * the memory) or `'int8'` (a quarter: whole numbers with a scale for each output feature, times
   * activations that are rounded to 8 bits with a scale for each row). All else is float32 in any case.
   * With few rows, decoding is limited by the memory that weights take.
   */
  precision?: DecodingPrecision | undefined;
  /**
   * Further models with the same target ids. The probability of a token is then the mean of those that
   * all models give it; attention weights are those of the first. Default: none.
   */
  ensemble?: readonly Transformer[] | undefined;
}

/** A target that a search has found. */
export interface GeneratedSequence {
  /** Its token ids without bos and eos. */
  readonly ids: number[];
  /** False if it was cut off at `maxLength` before the model ended it. */
  readonly ended: boolean;
  /**
   * Sum of the tokens' log-probabilities, with length and coverage penalty; null without a beam unless
   * `scores` were asked for.
   */
  readonly score: number | null;
  /** Log-probability of each token, eos last; empty unless `scores` were asked for. */
  readonly tokenScores: number[];
  /**
   * Weights of the attention to the source, `[tokens][source tokens]`, eos last; null unless asked for.
   */
  readonly attention: number[][] | null;
}

/** Options of {@link SequenceGenerator.generate}. */
export interface GenerateOptions extends DecodingOptions {
  /** Number of sources that are searched at a time, for this call; default 32. */
  batchSize?: number | undefined;
  /**
   * Called with the ids of a target that are certain by now, each time there are more; `index` is the
   * index of the source. With a beam, these are what all hypotheses begin with.
   */
  onTokens?: ((index: number, ids: number[]) => void) | undefined;
  /** Called with the targets of a source as soon as they are found. */
  onFound?: ((index: number, found: GeneratedSequence[]) => void) | undefined;
}

/** A pair of {@link SequenceGenerator.score}. */
export interface SequencePair {
  /** Ids of the source, with everything the model was trained with. */
  readonly source: readonly number[];
  /** Ids of the target without bos and eos. */
  readonly target: readonly number[];
}

/** The scores of a given target. */
export interface SequenceScore {
  /** Sum of the log-probabilities of all tokens, eos included. */
  readonly score: number;
  /** Log-probability of each token, eos last. */
  readonly tokenScores: number[];
}

/**
 * Searches targets for sources of token ids: greedy, beam search or sampling.
 *
 * Models of `makeModel` on the CPU in float32 are decoded in native code, off the event loop, with
 * their weights prepared once. There, a source gives the same target alone and in any batch, in any
 * order and on any number of threads, to the last bit of its scores. Calls at the same time share the
 * rows of a step. Other models (with hooks, modules of their own, on a GPU) are decoded by their own
 * `encode` and `decode`, greedily only.
 */
export class SequenceGenerator {
  /** Must be in eval mode to generate. */
  readonly model: Transformer;
  /** Ids of pad, bos and eos. */
  readonly specialIds: SpecialIds;
  /** How native decoding stores the weights. */
  readonly precision: DecodingPrecision;
  readonly #models: readonly Transformer[];
  readonly #never: readonly number[];
  readonly #limits: SearchLimits;
  #native: NativeGeneration | null = null;

  /**
   * @throws TypeError, RangeError if an argument is invalid
   * @throws TorchError ERR_DISPOSED if the model has been disposed of
   */
  constructor(model: Transformer, options: SequenceGeneratorOptions) {
    const owner = 'SequenceGenerator';
    checkModel(owner, model);
    checkRequiredOptions(
      owner,
      options,
      ['specialIds', 'never', 'precision', 'ensemble'],
      'specialIds',
    );
    const vocabulary = model.generator.proj.outFeatures;
    checkSpecialIds(options.specialIds, vocabulary, owner);
    const { pad, bos, eos } = options.specialIds;
    this.model = model;
    this.specialIds = { pad, bos, eos };
    const never = checkIdList(owner, 'never', orDefault(options.never, []), vocabulary);
    this.#never = [...new Set([pad, bos, ...never])].filter((id) => id !== eos);
    this.#models = [model, ...checkEnsemble(owner, options.ensemble, vocabulary)];
    const precision = orDefault(options.precision, 'float32');
    this.precision = checkChoice(owner, 'precision', precision, decodingPrecisions);
    this.#limits = {
      vocabulary,
      longestTarget: Math.min(...this.#models.map(targetLimit)),
      layers: model.config?.N ?? 1,
      heads: model.config?.h ?? 1,
    };
  }

  /**
   * Searches targets for each source; the results are in the order of the sources, the targets of a
   * source the best first.
   *
   * @param sources ids of each source with bos and eos, as the model was trained; not empty
   * @throws TypeError, RangeError if an argument is invalid; TypeError if the model is in training
   *   mode, or an option needs native code and the model has its own modules
   * @throws TorchError ERR_NON_FINITE naming the source if its probabilities are NaN or infinite
   */
  async generate(
    sources: readonly (readonly number[])[],
    options: GenerateOptions = {},
  ): Promise<GeneratedSequence[][]> {
    const owner = 'SequenceGenerator.generate';
    return this.generateFor(owner, (index) => `sources[${index}]`, sources, options);
  }

  /** {@link generate} for another public function, with its name for a source. @internal */
  async generateFor(
    owner: string,
    nameOf: (index: number) => string,
    sources: readonly (readonly number[])[],
    options: GenerateOptions,
  ): Promise<GeneratedSequence[][]> {
    checkOptions(owner, options, [...searchOptionNames, 'batchSize', 'onTokens', 'onFound']);
    const search = checkSearch(owner, options, this.#limits);
    this.#checkTokens(owner, search);
    const batchSize = checkInteger(owner, 'batchSize', orDefault(options.batchSize, 32), 1);
    this.#checkSources(owner, nameOf, sources);
    const examined = this.#examine(owner);
    search.signal?.throwIfAborted();
    if (sources.length === 0) return [];
    const results: GeneratedSequence[][] = sources.map(() => []);
    const found = (index: number, targets: GeneratedSequence[]) => {
      results[index] = targets;
      options.onFound?.(index, targets);
    };
    if (typeof examined === 'string') {
      await this.#generateByModules(owner, nameOf, sources, search, batchSize, examined, found);
      return results;
    }
    const hasScores = search.arguments.scores === true || search.arguments.beam !== 1;
    const native = await this.#nativeGeneration(examined);
    await forAll(sources.length, batchSize, search.signal, async (index, signal) => {
      const source = sources[index] as readonly number[];
      const targets = await native.search(
        {
          source,
          maxLength: search.maxLengthOf(source.length),
          search: {
            ...search.arguments,
            min_length: search.minLengthOf(source.length),
            seed: search.seed,
          },
          onTokens:
            options.onTokens === undefined ? undefined : (ids) => options.onTokens?.(index, ids),
          faultAt: (position) => nonFiniteFault(this.model, `${owner}: ${nameOf(index)}`, position),
        },
        signal,
      );
      found(index, hasScores ? targets : targets.map((target) => ({ ...target, score: null })));
    });
    return results;
  }

  /**
   * The log-probabilities of given targets (forced decoding).
   *
   * @throws TypeError, RangeError if a pair is invalid or too long for the position tables; TypeError if
   *   the model is in training mode or has modules of its own
   * @throws TorchError ERR_NON_FINITE naming the pair if its probabilities are NaN or infinite
   */
  async score(
    pairs: readonly SequencePair[],
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<SequenceScore[]> {
    const owner = 'SequenceGenerator.score';
    checkArray(owner, 'pairs', pairs, 'an array of { source, target }');
    checkOptions(owner, options, ['signal']);
    const { signal } = checkSearch(owner, { signal: options.signal }, this.#limits);
    const sources = pairs.map(({ source }) => source);
    this.#checkSources(owner, (index) => `pairs[${index}].source`, sources);
    const targets = pairs.map(({ target }, index) => {
      const name = `pairs[${index}].target`;
      const ids = [...checkIdList(owner, name, target, this.#limits.vocabulary)];
      if (ids.includes(this.specialIds.eos)) {
        throw new RangeError(
          `${owner}: ${name} must not contain eos, ${this.specialIds.eos}, which is added`,
        );
      }
      if (ids.length + 1 > this.#limits.longestTarget) {
        throw new RangeError(
          `${owner}: ${name} has ${ids.length + 1} tokens with eos, the model's position table ` +
            `${this.#limits.longestTarget}`,
        );
      }
      return [...ids, this.specialIds.eos];
    });
    const examined = this.#examine(owner);
    signal?.throwIfAborted();
    if (typeof examined === 'string') throw needsNative(owner, 'scoring', examined);
    const native = await this.#nativeGeneration(examined);
    const results = pairs.map((): SequenceScore => ({ score: 0, tokenScores: [] }));
    await forAll(pairs.length, 64, signal, async (index, stop) => {
      const target = targets[index] as number[];
      const [found] = await native.search(
        {
          source: sources[index] as readonly number[],
          maxLength: target.length,
          search: { prefix: target, forced: true, scores: true },
          faultAt: (position) => nonFiniteFault(this.model, `${owner}: pairs[${index}]`, position),
        },
        stop,
      );
      const { score, tokenScores } = found as FoundTarget;
      results[index] = { score, tokenScores };
    });
    return results;
  }

  /**
   * The encoder's output for each source: a Tensor `[tokens, dModel]` in float32, of the first model of an
   * ensemble. The caller disposes of them. It runs off the event loop.
   *
   * @throws TypeError, RangeError if a source is invalid; TypeError if the model is in training mode or
   *   has modules of its own
   */
  async encode(
    sources: readonly (readonly number[])[],
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Tensor[]> {
    const owner = 'SequenceGenerator.encode';
    checkOptions(owner, options, ['signal']);
    return this.encodeFor(owner, (index) => `sources[${index}]`, sources, options.signal);
  }

  /** {@link encode} for another public function, with its name for a source. @internal */
  async encodeFor(
    owner: string,
    nameOf: (index: number) => string,
    sources: readonly (readonly number[])[],
    givenSignal: AbortSignal | undefined,
  ): Promise<Tensor[]> {
    const signal = checkSignal(owner, 'signal', givenSignal);
    this.#checkSources(owner, nameOf, sources);
    const examined = this.#examine(owner);
    signal?.throwIfAborted();
    if (typeof examined === 'string') throw needsNative(owner, 'encoding', examined);
    const model = await preparedModel(examined[0], this.precision);
    const found: Tensor[] = [];
    try {
      for (let start = 0; start < sources.length; start += sourcesEncodedTogether) {
        signal?.throwIfAborted();
        const group = sources.slice(start, start + sourcesEncodedTogether);
        const lengths = group.map(({ length }) => length);
        const states = (await callAsync(
          'torchformer_decode::encode',
          model.handle,
          group.flat(),
          lengths,
        )) as Tensor;
        found.push(...eachAlone(states, lengths));
      }
      signal?.throwIfAborted();
      return found;
    } catch (error) {
      for (const tensor of found) tensor.dispose();
      throw error;
    }
  }

  /** Frees the prepared weights; the model itself is not disposed of. */
  dispose(): void {
    this.#native = null;
    this.#models.forEach(forgetPreparedModel);
  }

  /** Same as {@link SequenceGenerator.dispose}, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The one of the present weights. */
  async #nativeGeneration(examined: readonly DecodableModel[]): Promise<NativeGeneration> {
    const prepared = await Promise.all(
      examined.map((model) => preparedModel(model, this.precision)),
    );
    if (this.#native?.uses(prepared) !== true) {
      const { bos, eos } = this.specialIds;
      this.#native = new NativeGeneration(prepared, bos, eos, this.#never);
    }
    return this.#native;
  }

  /** All models as native code decodes them, or why it cannot. @throws TypeError in training mode */
  #examine(owner: string): readonly [DecodableModel, ...DecodableModel[]] | string {
    const examined = this.#models.map((model) => examineModel(owner, model));
    const obstacle = examined.find((found) => typeof found === 'string');
    return obstacle ?? (examined as [DecodableModel]);
  }

  /** Checks that the prefix can begin a target, and that there are tokens to go on with. */
  #checkTokens(owner: string, { arguments: given }: CheckedSearch): void {
    const { pad, bos, eos } = this.specialIds;
    const index = (given.prefix as readonly number[]).findIndex((id) =>
      [pad, bos, eos].includes(id),
    );
    if (index >= 0) {
      throw new RangeError(
        `${owner}: prefix[${index}] must not be pad, bos or eos, got ${(given.prefix as readonly number[])[index]}`,
      );
    }
    const left =
      this.#limits.vocabulary -
      new Set([...this.#never, ...(given.suppressed as readonly number[])]).size;
    if (left === 0) {
      throw new RangeError(`${owner}: suppress leaves no token to generate; leave some out`);
    }
  }

  #checkSources(
    owner: string,
    nameOf: (index: number) => string,
    sources: readonly (readonly number[])[],
  ): void {
    checkArray(owner, 'sources', sources, 'an array of arrays of ids');
    const src = Math.min(...this.#models.map((model) => modelVocabulary(model).src));
    const limit = Math.min(...this.#models.map(sourceLimit));
    sources.forEach((source, index) => {
      checkIdList(owner, nameOf(index), source, src);
      if (source.length === 0) {
        throw new RangeError(`${owner}: ${nameOf(index)} is empty; leave it out`);
      }
      if (source.length > limit) {
        throw new RangeError(
          `${owner}: ${nameOf(index)} has ${source.length} tokens, the model's position table ${limit}`,
        );
      }
    });
  }

  /** What only native code does; null: the search is greedy. */
  #needOfNativeCode(search: CheckedSearch): string | null {
    if (this.#models.length > 1) return 'an ensemble';
    return this.precision === 'float32'
      ? optionForNativeCode(search)
      : `precision ${this.precision}`;
  }

  async #generateByModules(
    owner: string,
    nameOf: (index: number) => string,
    sources: readonly (readonly number[])[],
    search: CheckedSearch,
    batchSize: number,
    obstacle: string,
    found: (index: number, targets: GeneratedSequence[]) => void,
  ): Promise<void> {
    const { eos, bos, pad } = this.specialIds;
    const needed = this.#needOfNativeCode(search);
    if (needed !== null) throw needsNative(owner, needed, obstacle);
    warnOnce(this.model, obstacle);
    const device = this.model.generator.proj.weight.device;
    const order = sources.map((_, index) => index);
    // Rows of similar length have little padding.
    order.sort((a, b) => lengthAt(sources, a) - lengthAt(sources, b));
    for (let start = 0; start < order.length; start += batchSize) {
      const indices = order.slice(start, start + batchSize);
      const batch = indices.map((index) => sources[index] as number[]);
      const [src, srcMask] = tidy(() => {
        const ids = padSequences(batch, pad, device);
        return [ids, paddingMask(ids, pad)] as const;
      });
      try {
        const decoded = await searchGreedily(this.model, src, srcMask, {
          owner,
          nameOf: (row) => nameOf(indices[row] as number),
          bos,
          eos,
          forbidden: [...this.#never, ...(search.arguments.suppressed as readonly number[])],
          maxLengths: batch.map(({ length }) => search.maxLengthOf(length)),
          signal: search.signal,
        });
        decoded.forEach(({ ids, ended }, row) => {
          const target = { ids, ended, score: null, tokenScores: [], attention: null };
          found(indices[row] as number, [target]);
        });
      } finally {
        src.dispose();
        srcMask.dispose();
      }
    }
  }
}

const sourcesEncodedTogether = 32;

/** The rows of each source, in memory of its own; disposes of the whole. */
function eachAlone(states: Tensor, lengths: readonly number[]): Tensor[] {
  let start = 0;
  const parts = lengths.map((length) => {
    const part = tidy(() => states.narrow(0, start, length).clone());
    start += length;
    return part;
  });
  states.dispose();
  return parts;
}

/** @throws TypeError, RangeError unless all are models with so many target ids */
function checkEnsemble(
  owner: string,
  models: readonly Transformer[] | undefined,
  vocabulary: number,
): readonly Transformer[] {
  if (models === undefined) return [];
  checkArray(owner, 'ensemble', models, 'an array of models');
  (models as readonly unknown[]).forEach((model, index) => {
    checkModel(`${owner}: ensemble[${index}]`, model);
    const { outFeatures } = model.generator.proj;
    if (outFeatures === vocabulary) return;
    throw new RangeError(
      `${owner}: ensemble[${index}] has ${outFeatures} target ids, the model ${vocabulary}; ` +
        'all models of an ensemble must have the same',
    );
  });
  return models;
}

function lengthAt(sources: readonly (readonly number[])[], index: number): number {
  return (sources[index] as readonly number[]).length;
}

/** What only native code does; null: the search is greedy. */
function optionForNativeCode({ arguments: given, minLengthOf }: CheckedSearch): string | null {
  if (given.beam !== 1) return 'a beam';
  if (given.temperature !== undefined) return 'sampling';
  if (given.scores === true) return 'scores';
  if (given.attention === true) return 'attention weights';
  if (minLengthOf(Infinity) !== 0) return 'minLength';
  if (given.repetition_penalty !== 1) return 'repetitionPenalty';
  if (given.no_repeat_ngram !== 0) return 'noRepeatNgram';
  return (given.prefix as readonly number[]).length > 0 ? 'a prefix' : null;
}

function needsNative(owner: string, what: string, obstacle: string): TypeError {
  return new TypeError(
    `${owner}: ${what} is for models that are decoded natively, but ${obstacle}; ` +
      'use a model from makeModel(…) on the CPU in float32, without hooks',
  );
}

const warned = new WeakSet<Transformer>();

function warnOnce(model: Transformer, obstacle: string): void {
  if (warned.has(model)) return;
  warned.add(model);
  process.emitWarning(
    `the model is decoded by its modules, which is slower than native decoding: ${obstacle}`,
    'TorchWarning',
  );
}

/**
 * Runs jobs 0 to count - 1, so many at a time. After a failure the others are aborted and waited for.
 */
async function forAll(
  count: number,
  atATime: number,
  signal: AbortSignal | undefined,
  job: (index: number, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  // One listener for each job: Node.js would take more than 10 for a leak.
  setMaxListeners(0, stop.signal);
  const abort = () => {
    stop.abort(signal?.reason);
  };
  signal?.addEventListener('abort', abort, { once: true });
  let next = 0;
  const work = async () => {
    while (next < count && !stop.signal.aborted) await job(next++, stop.signal);
  };
  try {
    const workers = Array.from({ length: Math.min(atATime, count) }, work);
    await Promise.all(workers).catch(async (error: unknown) => {
      stop.abort(error);
      await Promise.allSettled(workers);
      throw error;
    });
    signal?.throwIfAborted();
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
