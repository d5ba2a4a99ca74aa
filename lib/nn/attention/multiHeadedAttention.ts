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
  /** of the attention weights; default 0.1 (seed 001; the paper has none there) */
  dropout?: number;
  /** weights of a query that may attend nothing; default `'uniform'` */
  emptyRows?: EmptyRows;
  /** keeps the weights of the last forward in `attn`; default false */
  keepAttention?: boolean;
  /** biases in the four projections; default true */
  bias?: boolean;
  /**
   * turns queries and keys by their positions ({@link RotaryPositions}), for self-attention: the
   * positions of another sequence have no distance from these; default: not
   */
  rotary?: RotaryPositionsOptions;
}

/**
 * Attention in h subspaces side by side (paper, section 3.2.2): queries, keys and values are
 * projected by `linears` 0 to 2 and split into h heads of dK = dModel / h features; each head
 * attends (see {@link attention}); the heads' results side by side go through `linears` 3.
 */
export class MultiHeadedAttention extends Module {
  static override readonly takesPackedRows: boolean = true;

  static override readonly transientNames = ['attn'];

  /** Projections of query, key, value and output, each `[dModel, dModel]`; they start equal. */
  linears: ModuleList<Linear>;
  /** Of the weights. */
  dropout: Dropout;
  /** Null without rotary positions. */
  rotary: RotaryPositions | null;
  /**
   * The weights of the last forward, after dropout, `[B, h, Sq, Sk]`, without graph; null unless
   * `keepAttention`. Freed by the next forward and by `dispose()`; `attentionMaps` collects those
   * of a whole model.
   */
  attn: Tensor | null = null;
  /** Whether each forward keeps its weights in `attn`; may be changed at any time. */
  keepAttention: boolean;
  /** Weights of a query that may attend nothing. */
  readonly emptyRows: EmptyRows;
  /** Number of heads. */
  readonly h: number;
  /** Size of the vectors that go in and come out. */
  readonly dModel: number;
  /** Size of each head's queries and keys. */
  readonly dK: number;

  /**
   * @param h number of heads
   * @param dModel size of the vectors
   * @throws RangeError unless h divides dModel, and with rotary positions dModel / h is even
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
   * @param mask which keys each query may attend, see mask.ts; null: all; or a {@link PackedMask}
   *   with `[tokens, dModel]` in place of `[B, S, dModel]`
   * @returns `[B, Sq, dModel]`
   * @throws RangeError naming both shapes that do not fit, TypeError for dtypes and devices
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
      const [output, weights] = attention(this.turned(q), this.turned(k), v, {
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

  /** {@link MultiHeadedAttention.forward} for rows without padding, `[tokens, dModel]`. */
  private forwardPacked(query: Tensor, key: Tensor, value: Tensor, mask: PackedMask): Tensor {
    const owner = 'MultiHeadedAttention';
    const obstacle = settingForPadded(this);
    if (obstacle !== null) {
      throw new TypeError(`${owner}: ${obstacle} need a padded batch [B, S, dModel] and its mask`);
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

  private turned(heads: Tensor): Tensor {
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

/** The setting that needs padded batches, in words; null: none. */
function settingForPadded({ rotary, keepAttention }: MultiHeadedAttention): string | null {
  if (rotary !== null) return 'rotary positions';
  return keepAttention ? 'keepAttention' : null;
}
