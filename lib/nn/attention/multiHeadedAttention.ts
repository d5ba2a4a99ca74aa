import { checkBoolean, checkInteger, checkOptions, orDefault } from '../../runtime/arguments.js';
import { callTensor } from '../../tensor/dispatch.js';
import { keep, tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { attention } from './attention.js';
import { intoClones } from '../module/clones.js';
import type { ModuleList } from '../module/containers.js';
import { Dropout } from '../layers/dropout.js';
import { checkAttentionInputs, checkHeads, joinHeads, splitHeads } from './heads.js';
import { Linear } from '../layers/linear.js';
import { checkEmptyRows } from './mask.js';
import type { EmptyRows } from './mask.js';
import { Module } from '../module/module.js';
import { PackedMask, checkPackedRows } from '../packed/packedSequences.js';
import { rememberRegistered } from '../module/registration.js';
import { RotaryPositions } from '../layers/rotaryPositions.js';
import type { RotaryPositionsOptions } from '../layers/rotaryPositions.js';

/** Options of {@link MultiHeadedAttention}; the defaults are seed 001's. */
export interface MultiHeadedAttentionOptions {
  /** dropout of the attention weights; default 0.1 (seed 001; none in the paper) */
  dropout?: number;
  /** weights of a query that may not attend to any key; default `'uniform'` */
  emptyRows?: EmptyRows;
  /** store the weights of the last forward in `attn`; default false */
  keepAttention?: boolean;
  /** biases in the four projections; default true */
  bias?: boolean;
  /**
   * rotate queries and keys by their positions ({@link RotaryPositions}); only for self-attention,
   * since positions of different sequences have no distance; default: none
   */
  rotary?: RotaryPositionsOptions;
}

/**
 * Multi-head attention (paper, section 3.2.2): queries, keys and values are projected by `linears`
 * 0 to 2 and split into h heads of dK = dModel / h features; {@link attention} is computed for each
 * head; the concatenated results are projected by `linears` 3.
 */
export class MultiHeadedAttention extends Module {
  static override readonly takesPackedRows: boolean = true;

  static override readonly transientNames = ['attn'];

  /** Projections of query, key, value and output, each `[dModel, dModel]`; initially equal. */
  linears: ModuleList<Linear>;
  /** Applied to the attention weights. */
  dropout: Dropout;
  /** Rotary positions, or null. */
  rotary: RotaryPositions | null;
  /**
   * The weights of the last forward, after dropout, `[B, h, Sq, Sk]`, detached; null unless
   * `keepAttention` is true. Freed by the next forward and by `dispose()`; `attentionMaps` returns
   * those of a whole model.
   */
  attn: Tensor | null = null;
  /** Whether each forward stores its weights in `attn`; may be changed at any time. */
  keepAttention: boolean;
  /** Weights of a query that may not attend to any key. */
  readonly emptyRows: EmptyRows;
  /** Number of heads. */
  readonly h: number;
  /** Size of the input and output vectors. */
  readonly dModel: number;
  /** Size of each head's queries and keys. */
  readonly dK: number;

  /**
   * @param h number of heads
   * @param dModel size of the vectors
   * @throws RangeError unless h divides dModel and, with rotary positions, dModel / h is even
   */
  constructor(h: number, dModel: number, options: MultiHeadedAttentionOptions = {}) {
    super();
    const owner = 'MultiHeadedAttention';
    checkOptions(owner, options, optionNames);
    this.h = checkInteger(owner, 'h', h, 1);
    this.dModel = checkInteger(owner, 'dModel', dModel, 1);
    checkHeads(owner, h, dModel);
    this.dK = dModel / h;
    this.emptyRows = checkEmptyRows(owner, orDefault(options.emptyRows, 'uniform'));
    this.keepAttention = checkBoolean(
      owner,
      'keepAttention',
      orDefault(options.keepAttention, false),
    );
    const bias = checkBoolean(owner, 'bias', orDefault(options.bias, true));
    this.linears = intoClones(new Linear(dModel, dModel, { bias }), 4);
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    this.rotary =
      options.rotary === undefined ? null : new RotaryPositions(this.dK, options.rotary);
    rememberRegistered(this);
  }

  /**
   * @param query `[B, Sq, dModel]`
   * @param key `[B, Sk, dModel]`
   * @param value `[B, Sk, dModel]`
   * @param mask the keys that each query may attend to, see mask.ts; null: all; or a
   *   {@link PackedMask}, with `[tokens, dModel]` instead of `[B, S, dModel]`
   * @returns `[B, Sq, dModel]`
   * @throws RangeError if shapes do not match; TypeError or TorchError ERR_DEVICE if dtypes or devices
   *   differ
   */
  override forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | PackedMask | null = null,
  ): Tensor {
    if (mask instanceof PackedMask) return this.forwardPacked(query, key, value, mask);
    const { weight } = this.linears.at(0);
    checkAttentionInputs('MultiHeadedAttention', { query, key, value }, this.dModel, weight);
    return tidy(() => {
      const project = (index: number, input: Tensor) =>
        splitHeads(this.linears.at(index).forward(input), this.h);
      const [q, k, v] = [project(0, query), project(1, key), project(2, value)];
      const [output, weights] = attention(this.rotated(q), this.rotated(k), v, {
        mask,
        dropout: this.dropout,
        emptyRows: this.emptyRows,
        needWeights: this.keepAttention,
      });
      this.storeAttention(weights);
      return this.linears.at(3).forward(joinHeads(output));
    });
  }

  /** @internal */
  override get packingObstacle(): string | null {
    return super.packingObstacle ?? settingForPadded(this);
  }

  /** {@link MultiHeadedAttention.forward} for packed rows, `[tokens, dModel]`. */
  private forwardPacked(query: Tensor, key: Tensor, value: Tensor, mask: PackedMask): Tensor {
    const owner = 'MultiHeadedAttention';
    const obstacle = settingForPadded(this);
    if (obstacle !== null) {
      throw new TypeError(
        `${owner}: with ${obstacle}, a padded batch [B, S, dModel] and its mask are required`,
      );
    }
    checkPackedRows(owner, 'query', query, mask.queries);
    checkPackedRows(owner, 'key', key, mask.keys);
    checkPackedRows(owner, 'value', value, mask.keys);
    return tidy(() => {
      const attended = callTensor(
        'torchformer::packed_attention',
        this.linears.at(0).forward(query),
        this.linears.at(1).forward(key),
        this.linears.at(2).forward(value),
        mask.queries.offsets,
        mask.keys.offsets,
        this.h,
        mask.causal,
        this.dropout.activeProbability,
        { longest_query: mask.queries.longest, longest_key: mask.keys.longest },
      );
      return this.linears.at(3).forward(attended);
    });
  }

  private rotated(heads: Tensor): Tensor {
    return this.rotary === null ? heads : this.rotary.forward(heads);
  }

  private storeAttention(weights: Tensor | null): void {
    this.attn?.dispose();
    this.attn = weights === null ? null : keep(weights.detach());
  }

  override dispose(): void {
    super.dispose();
    this.storeAttention(null);
  }

  protected override extraDescription(): string {
    return `h=${this.h}, dModel=${this.dModel}`;
  }
}

const optionNames = ['dropout', 'emptyRows', 'keepAttention', 'bias', 'rotary'];

/** A description of the setting that needs padded batches; null: none. */
function settingForPadded({ rotary, keepAttention }: MultiHeadedAttention): string | null {
  if (rotary !== null) return 'rotary positions';
  return keepAttention ? 'keepAttention' : null;
}
