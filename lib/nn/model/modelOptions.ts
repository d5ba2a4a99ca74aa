/** Settings of `makeModel`: their types, their defaults and their checks. */
import {
  checkBoolean,
  checkChoice,
  checkInteger,
  checkOptions,
  checkProbability,
  orDefault,
} from '../../runtime/arguments.js';
import { checkHeads } from '../attention/heads.js';
import { checkEmptyRows } from '../attention/mask.js';
import type { EmptyRows } from '../attention/mask.js';
import { checkedNorm } from '../layers/norm.js';
import type { NormConfig, NormOptions } from '../layers/norm.js';
import { activations } from '../layers/positionwiseFeedForward.js';
import type { Activation } from '../layers/positionwiseFeedForward.js';
import type { NormOrder } from './sublayerConnection.js';

/** Number of token ids: one for source and target, or one for each. */
export type VocabSize =
  | number
  | {
      /** ids of the source's vocabulary, added tokens included */
      readonly src: number;
      /** ids of the target's vocabulary, added tokens included */
      readonly tgt: number;
    };

/** How a model knows where a token is, see {@link ModelOptions.positions}. */
export type Positions = 'paired' | 'perColumn' | 'learned' | 'rotary' | 'none';

/** Which weights are one, see {@link ModelOptions.tie}. */
export type Tie = 'none' | 'src-tgt' | 'tgt-generator' | 'all';

/** Which linear layers have biases. */
export interface BiasOptions {
  /** the four projections of each attention; default true */
  attention?: boolean;
  /** the feed-forward layers; default true */
  feedForward?: boolean;
  /** the scores of the vocabulary; default true */
  generator?: boolean;
}

/**
 * Settings of `makeModel`; the defaults are seed 001's, its sizes those of the paper's base model.
 * All are plain JSON.
 */
export interface ModelOptions {
  /** layers in encoder and decoder each; default 6 (paper, section 3.1; seed 001) */
  N?: number;
  /** size of the vectors; default 512 (paper, section 3.1; seed 001) */
  dModel?: number;
  /** inner size of the feed-forward layers; default 2048 (paper, section 3.3; seed 001) */
  dFf?: number;
  /** heads; must divide dModel; default 8 (paper, section 3.2.2; seed 001) */
  h?: number;
  /**
   * of positions, sublayers and feed-forward; default 0.1 (paper, section 5.4; seed 001). 0 turns
   * off that of the attention weights too, unless `attentionDropout` is given
   */
  dropout?: number;
  /**
   * of the attention weights; default 0.1, whatever else `dropout` is, as in seed 001; 0 with
   * `dropout: 0`
   */
  attentionDropout?: number;
  /** longest sequence: length of the table of positions; default 200 (seed 001) */
  maxLen?: number;
  /** default: seed 001's LayerNorm */
  norm?: NormOptions;
  /** norm before each sublayer (`'pre'`, default) or behind the residual sum (`'post'`, the paper) */
  order?: NormOrder;
  /** a norm behind each stack of layers; default: with `order: 'pre'` only */
  finalNorm?: boolean;
  /**
   * - `'paired'` (default; paper, seed 001) and `'perColumn'` (seed 002): sines and cosines added
   *   to the embeddings, see PositionalEncoding;
   * - `'learned'`: vectors added to the embeddings, see LearnedPositions;
   * - `'rotary'`: queries and keys of self-attention turned, see RotaryPositions; needs an even
   *   size of heads, dModel / h. Attention to the source has none;
   * - `'none'`
   */
  positions?: Positions;
  /** of the feed-forward layers; default `'relu'` (paper, section 3.3; the seeds) */
  activation?: Activation;
  /**
   * one Parameter in several places (paper, section 3.4; Press and Wolf 2017): the source's and the target's embedding
   * (`'src-tgt'`), the target's embedding and the generator's weight (`'tgt-generator'`), all
   * three (`'all'`), or nothing (`'none'`, default, seed 001). Embeddings are scaled by √dModel
   * all the same. In state dicts a tied weight has all its names, as in PyTorch
   */
  tie?: Tie;
  /** biases of all linear layers, or of each kind; default true */
  bias?: boolean | BiasOptions;
  /** weights of a query that may attend nothing; default `'uniform'` */
  emptyRows?: EmptyRows;
}

/**
 * Everything that is needed to make the model again, as plain JSON:
 * `const { vocabSize, ...options } = model.config` is what `makeModel(vocabSize, options)` takes.
 */
export interface ModelConfig {
  /** One number when source and target have the same. */
  readonly vocabSize: VocabSize;
  /** Layers in encoder and decoder each. */
  readonly N: number;
  /** Size of the vectors. */
  readonly dModel: number;
  /** Inner size of the feed-forward layers. */
  readonly dFf: number;
  /** Heads; dModel / h is the size of each. */
  readonly h: number;
  /** Probability in positions, sublayers and feed-forward. */
  readonly dropout: number;
  /** Probability for attention weights. */
  readonly attentionDropout: number;
  /** Length of the table of positions; `Transformer.growPositions` changes it. */
  readonly maxLen: number;
  /** The norm of all layers, complete. */
  readonly norm: NormConfig;
  /** Where the norms are, see {@link ModelOptions.order}. */
  readonly order: NormOrder;
  /** Whether a norm is behind each stack of layers. */
  readonly finalNorm: boolean;
  /** How the model knows where a token is, see {@link ModelOptions.positions}. */
  readonly positions: Positions;
  /** Of the feed-forward layers. */
  readonly activation: Activation;
  /** Which weights are one, see {@link ModelOptions.tie}. */
  readonly tie: Tie;
  /** Which linear layers have biases. */
  readonly bias: Readonly<Required<BiasOptions>>;
  /** What a query gets that may attend nothing. */
  readonly emptyRows: EmptyRows;
}

/** The words that the options take. @internal */
export const modelChoices = {
  order: ['pre', 'post'],
  positions: ['paired', 'perColumn', 'learned', 'rotary', 'none'],
  activation: activations,
  tie: ['none', 'src-tgt', 'tgt-generator', 'all'],
} as const;

const optionNames = [
  ...['N', 'dModel', 'dFf', 'h', 'dropout', 'attentionDropout', 'maxLen', 'norm', 'order'],
  ...['finalNorm', 'positions', 'activation', 'tie', 'bias', 'emptyRows'],
];

/**
 * Checks all settings and fills in the defaults.
 *
 * @throws RangeError, TypeError naming the setting, what it must be and what came
 */
export function checkedConfig(
  owner: string,
  vocabSize: VocabSize,
  options: ModelOptions,
): ModelConfig {
  checkOptions(owner, options, optionNames);
  const size = (name: 'N' | 'dModel' | 'dFf' | 'h' | 'maxLen', byDefault: number) =>
    checkInteger(owner, name, orDefault(options[name], byDefault), 1);
  const share = (name: 'dropout' | 'attentionDropout', byDefault: number) =>
    checkProbability(owner, name, orDefault(options[name], byDefault));
  const dropout = share('dropout', 0.1);
  const { order = 'pre', positions = 'paired', activation = 'relu', tie = 'none' } = options;
  const config: ModelConfig = {
    vocabSize: checkedVocabSize(owner, vocabSize),
    N: size('N', 6),
    dModel: size('dModel', 512),
    dFf: size('dFf', 2048),
    h: size('h', 8),
    dropout,
    // Who asks for no dropout, for an exact comparison say, means all of it.
    attentionDropout: share('attentionDropout', dropout === 0 ? 0 : 0.1),
    maxLen: size('maxLen', 200),
    norm: checkedNorm(owner, options.norm),
    order: checkChoice(owner, 'order', order, modelChoices.order),
    finalNorm: checkBoolean(owner, 'finalNorm', orDefault(options.finalNorm, order === 'pre')),
    positions: checkChoice(owner, 'positions', positions, modelChoices.positions),
    activation: checkChoice(owner, 'activation', activation, modelChoices.activation),
    tie: checkChoice(owner, 'tie', tie, modelChoices.tie),
    bias: checkedBias(owner, orDefault(options.bias, true)),
    emptyRows: checkEmptyRows(owner, orDefault(options.emptyRows, 'uniform')),
  };
  checkTogether(owner, config);
  return config;
}

/** The sizes of both vocabularies. */
export function vocabSizes({ vocabSize }: Pick<ModelConfig, 'vocabSize'>): {
  readonly src: number;
  readonly tgt: number;
} {
  return typeof vocabSize === 'number' ? { src: vocabSize, tgt: vocabSize } : vocabSize;
}

/** How many ids source and target both have. */
export function sharedVocabSize(config: Pick<ModelConfig, 'vocabSize'>): number {
  const { src, tgt } = vocabSizes(config);
  return Math.min(src, tgt);
}

function checkedVocabSize(owner: string, vocabSize: VocabSize): VocabSize {
  if (typeof vocabSize !== 'object' || vocabSize === null) {
    return checkInteger(owner, 'vocabSize', vocabSize, 1);
  }
  checkOptions(`${owner} vocabSize`, vocabSize, ['src', 'tgt']);
  const src = checkInteger(owner, 'vocabSize.src', vocabSize.src, 1);
  const tgt = checkInteger(owner, 'vocabSize.tgt', vocabSize.tgt, 1);
  return src === tgt ? src : { src, tgt };
}

function checkedBias(owner: string, bias: boolean | BiasOptions): Required<BiasOptions> {
  const names = ['attention', 'feedForward', 'generator'] as const;
  if (typeof bias !== 'object' || bias === null) {
    checkBoolean(owner, 'bias', bias);
    return { attention: bias, feedForward: bias, generator: bias };
  }
  checkOptions(`${owner} bias`, bias, names);
  const part = (name: keyof BiasOptions) =>
    checkBoolean(owner, `bias.${name}`, orDefault(bias[name], true));
  return {
    attention: part('attention'),
    feedForward: part('feedForward'),
    generator: part('generator'),
  };
}

/** Settings that are right alone and wrong together. */
function checkTogether(owner: string, config: ModelConfig): void {
  const { dModel, h, norm, positions, tie, vocabSize } = config;
  checkHeads(owner, h, dModel);
  if (positions === 'rotary' && (dModel / h) % 2 !== 0) {
    throw new RangeError(
      `${owner}: positions 'rotary' turn the features of a head in pairs, so dModel / h must be ` +
        `even, got ${dModel} / ${h} = ${dModel / h}`,
    );
  }
  if (norm.kind === 'layer' && norm.std === 'sample' && dModel === 1) {
    throw new RangeError(
      `${owner}: norm.std 'sample' divides by dModel - 1, so dModel must be at least 2, got 1`,
    );
  }
  if ((tie === 'src-tgt' || tie === 'all') && typeof vocabSize !== 'number') {
    throw new RangeError(
      `${owner}: tie '${tie}' needs one vocabulary for source and target, ` +
        `got sizes ${vocabSize.src} and ${vocabSize.tgt}`,
    );
  }
}
