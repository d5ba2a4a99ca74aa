/** Options of `makeModel`: types, defaults and checks. */
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

/** Number of token ids: one number for source and target, or one for each. */
export type VocabSize =
  | number
  | {
      /** number of source ids, including added tokens */
      readonly src: number;
      /** number of target ids, including added tokens */
      readonly tgt: number;
    };

/** How a model represents positions, see {@link ModelOptions.positions}. */
export type Positions = 'paired' | 'perColumn' | 'learned' | 'rotary' | 'none';

/** Which weights are shared, see {@link ModelOptions.tie}. */
export type Tie = 'none' | 'src-tgt' | 'tgt-generator' | 'all';

/** Which linear layers have biases. */
export interface BiasOptions {
  /** the four projections of each attention; default true */
  attention?: boolean;
  /** the feed-forward layers; default true */
  feedForward?: boolean;
  /** the generator's projection; default true */
  generator?: boolean;
}

/**
 * Options of `makeModel`; the defaults are seed 001's, with the sizes of the paper's base model.
 * All are plain JSON.
 */
export interface ModelOptions {
  /** number of layers in the encoder and in the decoder; default 6 (paper, section 3.1; seed 001) */
  N?: number;
  /** size of the vectors; default 512 (paper, section 3.1; seed 001) */
  dModel?: number;
  /** inner size of the feed-forward layers; default 2048 (paper, section 3.3; seed 001) */
  dFf?: number;
  /** number of heads; must divide dModel; default 8 (paper, section 3.2.2; seed 001) */
  h?: number;
  /**
   * dropout in positions, sublayers and feed-forward; default 0.1 (paper, section 5.4; seed 001). 0
   * also disables the dropout of attention weights, unless `attentionDropout` is given
   */
  dropout?: number;
  /**
   * dropout of the attention weights; default 0.1 regardless of `dropout`, as in seed 001, but 0 with
   * `dropout: 0`
   */
  attentionDropout?: number;
  /** maximum sequence length, which is that of the position table; default 200 (seed 001) */
  maxLen?: number;
  /** default: seed 001's LayerNorm */
  norm?: NormOptions;
  /** norm before each sublayer (`'pre'`, default) or after the residual sum (`'post'`, paper) */
  order?: NormOrder;
  /** a norm after each stack of layers; default: only with `order: 'pre'` */
  finalNorm?: boolean;
  /**
   * - `'paired'` (default; paper, seed 001) and `'perColumn'` (seed 002): sines and cosines added
   *   to the embeddings, see PositionalEncoding;
   * - `'learned'`: vectors added to the embeddings, see LearnedPositions;
   * - `'rotary'`: queries and keys of self-attention rotated, see RotaryPositions; dModel / h must
   *   be even. Attention to the source has no positions;
   * - `'none'`
   */
  positions?: Positions;
  /** activation of the feed-forward layers; default `'relu'` (paper, section 3.3; seeds) */
  activation?: Activation;
  /**
   * one Parameter in several places (paper, section 3.4; Press and Wolf 2017): the embeddings of
   * source and target (`'src-tgt'`), the target embedding and the generator's weight
   * (`'tgt-generator'`), all three (`'all'`), or nothing (`'none'`, default, seed 001). Embeddings
   * are scaled by √dModel in any case. State dicts list a tied weight under all its names, as in
   * PyTorch
   */
  tie?: Tie;
  /** biases of all linear layers, or of each kind; default true */
  bias?: boolean | BiasOptions;
  /** weights of a query that may not attend to any key; default `'uniform'` */
  emptyRows?: EmptyRows;
}

/**
 * Everything needed to create the model again, as plain JSON:
 * `const { vocabSize, ...options } = model.config` gives the arguments of
 * `makeModel(vocabSize, options)`.
 */
export interface ModelConfig {
  /** One number if source and target have the same size. */
  readonly vocabSize: VocabSize;
  /** Number of layers in the encoder and in the decoder. */
  readonly N: number;
  /** Size of the vectors. */
  readonly dModel: number;
  /** Inner size of the feed-forward layers. */
  readonly dFf: number;
  /** Number of heads, each of size dModel / h. */
  readonly h: number;
  /** Dropout in positions, sublayers and feed-forward. */
  readonly dropout: number;
  /** Dropout of attention weights. */
  readonly attentionDropout: number;
  /** Length of the position table; `Transformer.growPositions` changes it. */
  readonly maxLen: number;
  /** The norm of all layers, with all defaults filled in. */
  readonly norm: NormConfig;
  /** Where the norms are, see {@link ModelOptions.order}. */
  readonly order: NormOrder;
  /** Whether there is a norm after each stack of layers. */
  readonly finalNorm: boolean;
  /** How the model represents positions, see {@link ModelOptions.positions}. */
  readonly positions: Positions;
  /** Activation of the feed-forward layers. */
  readonly activation: Activation;
  /** Which weights are shared, see {@link ModelOptions.tie}. */
  readonly tie: Tie;
  /** Which linear layers have biases. */
  readonly bias: Readonly<Required<BiasOptions>>;
  /** Weights of a query that may not attend to any key. */
  readonly emptyRows: EmptyRows;
}

/** The valid values of the options. @internal */
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
 * Checks all options and fills in the defaults.
 *
 * @throws RangeError, TypeError for an invalid option
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
    // `dropout: 0`, for example for an exact comparison, is meant for all dropout.
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

/** The number of ids that source and target both have. */
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

/** Checks that valid options are compatible with each other. */
function checkTogether(owner: string, config: ModelConfig): void {
  const { dModel, h, norm, positions, tie, vocabSize } = config;
  checkHeads(owner, h, dModel);
  if (positions === 'rotary' && (dModel / h) % 2 !== 0) {
    throw new RangeError(
      `${owner}: positions 'rotary' rotate the features of a head in pairs, so dModel / h must be ` +
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
      `${owner}: tie '${tie}' requires one vocabulary for source and target, ` +
        `got sizes ${vocabSize.src} and ${vocabSize.tgt}`,
    );
  }
}
