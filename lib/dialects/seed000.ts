/**
 * The parts of seed 000. It differs from seed 001 in LayerNorm (sample deviation, eps added to it),
 * in dropout 0.2 everywhere, including attention weights, and in names.
 *
 * Its masks are as in the rest of the package: 0 is blocked. In a mask `[B, S, S]` the batch comes
 * first; the post inserts a dimension before it, so that each head gets the mask of another
 * sentence.
 */
import { checkInteger, checkOptions, orDefault } from '../runtime/arguments.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkHeads } from '../nn/attention/heads.js';
import { LayerNorm as AnyLayerNorm } from '../nn/layers/layerNorm.js';
import type { Linear } from '../nn/layers/linear.js';
import type { ModuleList } from '../nn/module/containers.js';
import type { EmptyRows } from '../nn/attention/mask.js';
import { MultiHeadedAttention } from '../nn/attention/multiHeadedAttention.js';
import type { NormOptions } from '../nn/layers/norm.js';
import type { Parameter } from '../nn/module/parameter.js';
import { PositionwiseFeedForward } from '../nn/layers/positionwiseFeedForward.js';
import { SublayerConnection } from '../nn/model/sublayerConnection.js';
import type { NormOrder } from '../nn/model/sublayerConnection.js';

export { attention } from '../nn/attention/attention.js';
export { clone } from '../nn/module/clones.js';

/** The norm of seed 000 for other modules: `makeModel(vocabSize, { norm: seed000.norm })`. */
export const norm = {
  /** the sample deviation, divided by dModel - 1 */
  std: 'sample',
  /** added to the deviation */
  epsPlace: 'outside',
  /** the post's value */
  eps: 1e-6,
  /** names of scale and shift in state dicts */
  names: 'k/b',
} as const satisfies NormOptions;

/** Options of {@link LayerNorm}. */
export interface LayerNormOptions {
  /** added to the deviation; default 1e-6 (seed 000) */
  eps?: number;
}

/**
 * k · (x - mean) / (std + eps) + b over the last dimension, with the sample deviation (divided by
 * dModel - 1). Keys `k` and `b`.
 */
export class LayerNorm extends AnyLayerNorm {
  /** @throws RangeError if dModel is below 2 (no sample deviation), or eps is not above 0 */
  constructor(dModel: number, options: LayerNormOptions = {}) {
    checkOptions('LayerNorm', options, ['eps']);
    super(dModel, { ...norm, eps: orDefault(options.eps, norm.eps) });
  }

  /** The scale, `[dModel]`. */
  get k(): Parameter {
    return this.scale;
  }

  /** The shift, `[dModel]`. */
  get b(): Parameter {
    return this.shift;
  }
}

/** Options of {@link SubLayerConnection}. */
export interface SubLayerConnectionOptions {
  /** of the sublayer's result; default 0.2 (seed 000) */
  dropout?: number;
  /**
   * `'pre'` (default): x + dropout(f(norm(x))), which the post uses; `'post'`:
   * norm(x + dropout(f(x))), as in the paper (section 3.1), which is commented out in the post
   */
  order?: NormOrder;
}

/** Residual connection around any sublayer. Keys `layer_norm.k`, `layer_norm.b`. */
export class SubLayerConnection extends SublayerConnection {
  static override readonly stateNames: Readonly<Record<string, string>> = { norm: 'layer_norm' };

  /** @throws RangeError, TypeError for a size or option out of range */
  constructor(dModel: number, options: SubLayerConnectionOptions = {}) {
    checkOptions('SubLayerConnection', options, ['dropout', 'order']);
    super(dModel, {
      dropout: orDefault(options.dropout, 0.2),
      order: orDefault(options.order, 'pre'),
      norm,
    });
  }
}

/** Options of {@link FeedForward}. */
export interface FeedForwardOptions {
  /** between ReLU and the second layer; default 0.2 (seed 000) */
  dropout?: number;
}

/** linear2(dropout(relu(linear1(x)))) at each position. Keys `linear_1.weight`, … */
export class FeedForward extends PositionwiseFeedForward {
  static override readonly stateNames = { w1: 'linear_1', w2: 'linear_2', w3: 'linear_3' };

  /**
   * @param dModel size of the vectors
   * @param outputDim size between the two layers; the output size is dModel
   * @throws RangeError for sizes that are not positive integers, or dropout outside 0 to 1
   */
  constructor(dModel: number, outputDim: number, options: FeedForwardOptions = {}) {
    checkOptions('FeedForward', options, ['dropout']);
    super(dModel, outputDim, { dropout: orDefault(options.dropout, 0.2) });
  }
}

/** Options of {@link MultiHeadAttention}. */
export interface MultiHeadAttentionOptions {
  /** of the attention weights; default 0.2 (seed 000) */
  dropout?: number;
  /** weights of a query with every key blocked; default `'uniform'`, as from the post's -1e9 */
  emptyRows?: EmptyRows;
  /** keeps the weights of the last forward in `weight`; default false */
  keepAttention?: boolean;
}

/**
 * Multi-head attention: self-attention (the same tensor three times), masked self-attention (with a
 * mask), or cross-attention (query from the decoder, key and value from the encoder). Keys
 * `linear_list.0.weight` (query) to `linear_list.3.weight` (output).
 */
export class MultiHeadAttention extends MultiHeadedAttention {
  static override readonly stateNames: Readonly<Record<string, string>> = {
    linears: 'linear_list',
  };

  /** @throws RangeError unless numHeads divides dModel */
  constructor(dModel: number, numHeads: number, options: MultiHeadAttentionOptions = {}) {
    const owner = 'MultiHeadAttention';
    checkOptions(owner, options, ['dropout', 'emptyRows', 'keepAttention']);
    checkInteger(owner, 'dModel', dModel, 1);
    checkInteger(owner, 'numHeads', numHeads, 1);
    checkHeads(owner, numHeads, dModel, { heads: 'numHeads', dModel: 'dModel' });
    super(numHeads, dModel, {
      dropout: orDefault(options.dropout, 0.2),
      emptyRows: orDefault(options.emptyRows, 'uniform'),
      keepAttention: orDefault(options.keepAttention, false),
    });
  }

  /**
   * The weights of the last forward, after dropout, `[B, numHeads, Sq, Sk]`, detached from the
   * graph; null unless `keepAttention` is set. Freed by the next forward and by `dispose()`.
   */
  get weight(): Tensor | null {
    return this.attn;
  }

  /** The four projections, `linears` in {@link MultiHeadedAttention}. */
  get linearList(): ModuleList<Linear> {
    return this.linears;
  }
}
