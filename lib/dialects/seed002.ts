/**
 * The parts of seed 002. It differs from seed 001 in that its modules have their own norm and
 * residual connection, in its masks (true is blocked), its positions (an exponent for each column)
 * and its dropout (after the last layer of each module, none on attention weights). Its fixed
 * sizes are the defaults here.
 */
import { checkInteger, checkOptions, orDefault } from '../runtime/arguments.js';
import { checkTensor, formatShape } from '../tensor/check.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { attention as attend } from '../nn/attention/attention.js';
import { checkIds } from '../nn/check.js';
import { Dropout } from '../nn/layers/dropout.js';
import { Embedding } from '../nn/layers/embedding.js';
import { checkAttentionInputs, checkHeads, joinHeads, splitHeads } from '../nn/attention/heads.js';
import { normal_ } from '../nn/module/init.js';
import { Linear } from '../nn/layers/linear.js';
import { checkEmptyRows, fromBlockedMask } from '../nn/attention/mask.js';
import type { EmptyRows } from '../nn/attention/mask.js';
import { Module } from '../nn/module/module.js';
import { checkedNorm, makeNorm } from '../nn/layers/norm.js';
import type { Norm, NormOptions } from '../nn/layers/norm.js';
import { PositionalEncoding } from '../nn/layers/positionalEncoding.js';
import { PositionwiseFeedForward } from '../nn/layers/positionwiseFeedForward.js';
import { rememberRegistered } from '../nn/module/registration.js';

/** The post's fixed sizes. */
const sizes = { vocabSize: 39, maxLen: 50, dModel: 32, h: 4, dFf: 64 };

/**
 * The norm of seed 002 for other modules, which is `torch.nn.LayerNorm`:
 * `makeModel(vocabSize, { norm: seed002.norm })`.
 */
export const norm = {
  /** divided by dModel */
  std: 'population',
  /** added to the variance under the root */
  epsPlace: 'inside',
  /** PyTorch's default */
  eps: 1e-5,
  /** names of scale and shift in state dicts */
  names: 'weight/bias',
} as const satisfies NormOptions;

/** Options of {@link attention}. */
export interface AttentionOptions {
  /**
   * weights of a query with every key blocked; default `'uniform'` (the post's -Infinity gives NaN)
   */
  emptyRows?: EmptyRows;
}

/**
 * Scaled dot-product attention (paper, section 3.2.1) with the heads merged.
 *
 * @param Q `[B, H, Sq, Dk]`
 * @param K `[B, H, Sk, Dk]`
 * @param V `[B, H, Sk, Dv]`
 * @param mask true (or 1) blocks the key; usually `[B, 1, Sq, Sk]`, also the other shapes of
 *   nn/attention/mask.ts; null: no key is blocked
 * @returns `[B, Sq, H · Dv]`
 * @throws RangeError naming the shapes that do not fit, TypeError for dtypes and devices
 */
export function attention(
  Q: Tensor,
  K: Tensor,
  V: Tensor,
  mask: Tensor | null = null,
  options: AttentionOptions = {},
): Tensor {
  checkOptions('attention', options, ['emptyRows']);
  checkTensor('attention', 'Q', Q);
  if (Q.ndim !== 4) {
    throw new RangeError(`attention: Q must be [B, H, Sq, Dk], got ${formatShape(Q.shape)}`);
  }
  return tidy(() => {
    const [output] = attend(Q, K, V, {
      mask: mask === null ? null : fromBlockedMask('attention', mask),
      emptyRows: orDefault(options.emptyRows, 'uniform'),
      needWeights: false,
    });
    return joinHeads(output);
  });
}

/** Options of {@link MultiHead}. */
export interface MultiHeadOptions {
  /** size of the vectors; default 32 (seed 002) */
  dModel?: number;
  /** number of heads; must divide dModel; default 4 (seed 002) */
  h?: number;
  /** dropout of the result, before Q is added; default 0.1 (seed 002) */
  dropout?: number;
  /** weights of a query with every key blocked; default `'uniform'` (the post returns NaN) */
  emptyRows?: EmptyRows;
}

/**
 * Q + dropout(out_fc(attention(norm(Q), norm(K), norm(V)))), with one shared norm and separate
 * projections. Keys `fc_Q.weight`, `fc_K.weight`, `fc_V.weight`, `out_fc.weight`, `norm.weight`,
 * and the biases.
 */
export class MultiHead extends Module {
  static override readonly stateNames: Readonly<Record<string, string>> = {
    fcQ: 'fc_Q',
    fcK: 'fc_K',
    fcV: 'fc_V',
    outFc: 'out_fc',
  };

  /** Projection of the normalized Q, `[dModel, dModel]`. In state dicts `fc_Q`. */
  fcQ: Linear;
  /** Projection of the normalized K, `[dModel, dModel]`. In state dicts `fc_K`. */
  fcK: Linear;
  /** Projection of the normalized V, `[dModel, dModel]`. In state dicts `fc_V`. */
  fcV: Linear;
  /** Output projection of the merged heads, `[dModel, dModel]`. In state dicts `out_fc`. */
  outFc: Linear;
  /** Shared norm of Q, K and V. */
  norm: Norm;
  /** Dropout of the result, before Q is added. */
  dropout: Dropout;
  /** Size of the vectors. */
  readonly dModel: number;
  /** Number of heads. */
  readonly h: number;
  /** Weights of a query with every key blocked. */
  readonly emptyRows: EmptyRows;

  /** @throws RangeError unless h divides dModel; RangeError, TypeError for options out of range */
  constructor(options: MultiHeadOptions = {}) {
    super();
    checkOptions('MultiHead', options, ['dModel', 'h', 'dropout', 'emptyRows']);
    this.dModel = checkInteger('MultiHead', 'dModel', orDefault(options.dModel, sizes.dModel), 1);
    this.h = checkInteger('MultiHead', 'h', orDefault(options.h, sizes.h), 1);
    checkHeads('MultiHead', this.h, this.dModel);
    this.emptyRows = checkEmptyRows('MultiHead', orDefault(options.emptyRows, 'uniform'));
    const { dModel } = this;
    this.fcQ = new Linear(dModel, dModel);
    this.fcK = new Linear(dModel, dModel);
    this.fcV = new Linear(dModel, dModel);
    this.outFc = new Linear(dModel, dModel);
    this.norm = makeNorm(dModel, checkedNorm('MultiHead', norm));
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    rememberRegistered(this);
  }

  /**
   * @param Q `[B, Sq, dModel]`
   * @param K `[B, Sk, dModel]`
   * @param V `[B, Sk, dModel]`
   * @param mask true (or 1) blocks the key; usually `[B, 1, Sq, Sk]`, also the other shapes of
   *   nn/attention/mask.ts; null: no key is blocked
   * @returns `[B, Sq, dModel]`
   * @throws RangeError naming the shapes that do not fit, and for a mask of two dimensions if B
   *   equals Sq; TypeError for dtypes and devices
   */
  override forward(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | null = null): Tensor {
    const { dModel, h, emptyRows } = this;
    checkAttentionInputs('MultiHead', { query: Q, key: K, value: V }, dModel, this.fcQ.weight);
    refuseAmbiguousMask(mask, Q);
    return tidy(() => {
      const normedQ = this.norm.forward(Q);
      const normedK = K === Q ? normedQ : this.norm.forward(K);
      const normedV = V === K ? normedK : this.norm.forward(V);
      const attended = attention(
        splitHeads(this.fcQ.forward(normedQ), h),
        splitHeads(this.fcK.forward(normedK), h),
        splitHeads(this.fcV.forward(normedV), h),
        mask,
        { emptyRows },
      );
      return this.dropout.addTo(Q, this.outFc.forward(attended));
    });
  }

  protected override extraDescription(): string {
    return `dModel=${this.dModel}, h=${this.h}`;
  }
}

/** @throws RangeError for a mask of two dimensions that may be `[B, Sk]` or `[Sq, Sk]` */
function refuseAmbiguousMask(mask: Tensor | null, Q: Tensor): void {
  if (mask === null) return;
  checkTensor('MultiHead', 'mask', mask);
  const [B, Sq] = Q.shape as [number, number];
  if (mask.ndim !== 2 || B === 1 || B !== Sq || mask.shape[0] !== B) return;
  throw new RangeError(
    `MultiHead: mask must be [B|1, Sq|1, Sk] or [B|1, H|1, Sq|1, Sk] for ${B} sequences of ${Sq} ` +
      `queries, got ${formatShape(mask.shape)}, which may be [B, Sk] or [Sq, Sk]: ` +
      'pass mask.unsqueeze(1) for the first, mask.unsqueeze(0) for the second',
  );
}

/** Options of {@link PositionEmbedding}. */
export interface PositionEmbeddingOptions {
  /** number of ids; default 39 (seed 002) */
  vocabSize?: number;
  /** size of the vectors; default 32 (seed 002) */
  dModel?: number;
  /** number of positions in the table; default 50 (seed 002) */
  maxLen?: number;
}

/**
 * Token embedding, unscaled, plus the table of positions, in which column i has the exponent
 * i / dModel (in the paper, a sine and its cosine share one); no dropout. The embedding is initialized
 * with normal(0, 0.1). Keys `embed.weight`, `pe`.
 */
export class PositionEmbedding extends PositionalEncoding {
  /** The table of vectors, `[vocabSize, dModel]`. */
  embed: Embedding;

  /** @throws RangeError, TypeError for options out of range */
  constructor(options: PositionEmbeddingOptions = {}) {
    checkOptions('PositionEmbedding', options, ['vocabSize', 'dModel', 'maxLen']);
    const dModel = orDefault(options.dModel, sizes.dModel);
    super(dModel, {
      maxLen: orDefault(options.maxLen, sizes.maxLen),
      dropout: 0,
      formula: 'perColumn',
    });
    this.embed = new Embedding(orDefault(options.vocabSize, sizes.vocabSize), dModel);
    normal_(this.embed.weight, 0, 0.1);
    rememberRegistered(this);
  }

  /**
   * @param ids int64 or int32 `[B, S]`; in the post S is always 50, here it may be less
   * @returns `[B, S, dModel]`
   * @throws RangeError naming an id outside the vocabulary, or S if it exceeds the table
   */
  override forward(ids: Tensor): Tensor {
    checkIds('PositionEmbedding', 'ids', ids, 2);
    return tidy(() => super.forward(this.embed.forward(ids)));
  }
}

/** Options of {@link FullyConnectedOutput}. */
export interface FullyConnectedOutputOptions {
  /** size of the vectors; default 32 (seed 002) */
  dModel?: number;
  /** size between the two layers; default 64 (seed 002) */
  dFf?: number;
  /** after the second layer only; default 0.1 (seed 002) */
  dropout?: number;
}

/** In the post, the two layers are at indices 0 and 2 of a Sequential, with ReLU between them. */
class FullyConnected extends PositionwiseFeedForward {
  static override readonly stateNames = { w1: '0', w2: '2', w3: '3' };
}

/**
 * x + dropout(fc(norm(x))), where fc is two layers with ReLU between them. Keys `fc.0.weight`,
 * `fc.2.weight`, `norm.weight`, and the biases.
 */
export class FullyConnectedOutput extends Module {
  // Not a SublayerConnection, whose norm comes first: its parameters would be in another order.
  /** The two layers with ReLU between them, from `[…, dModel]` to the same shape. */
  fc: PositionwiseFeedForward;
  /** Norm of the input. */
  norm: Norm;
  /** Dropout of the result, before the input is added. */
  dropout: Dropout;

  /** @throws RangeError, TypeError for options out of range */
  constructor(options: FullyConnectedOutputOptions = {}) {
    super();
    checkOptions('FullyConnectedOutput', options, ['dModel', 'dFf', 'dropout']);
    const dModel = orDefault(options.dModel, sizes.dModel);
    this.fc = new FullyConnected(dModel, orDefault(options.dFf, sizes.dFf), { dropout: 0 });
    this.norm = makeNorm(dModel, checkedNorm('FullyConnectedOutput', norm));
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    rememberRegistered(this);
  }

  /**
   * @param input `[…, dModel]`
   * @returns the same shape
   */
  override forward(input: Tensor): Tensor {
    checkTensor('FullyConnectedOutput', 'input', input);
    const { fc, norm: own, dropout } = this;
    return tidy(() => dropout.addTo(input, fc.forward(own.forward(input))));
  }
}
