import { checkInteger, checkOptions } from '../runtime/options.js';
import { checkBoolean, formatShape } from '../tensor/check.js';
import { keep, tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { attention } from './attention.js';
import { checkFeatures } from './check.js';
import { intoClones } from './clones.js';
import type { ModuleList } from './containers.js';
import { Dropout } from './dropout.js';
import { Linear } from './linear.js';
import { checkEmptyRows } from './mask.js';
import type { EmptyRows } from './mask.js';
import { Module } from './module.js';

export interface MultiHeadedAttentionOptions {
  /** of the attention weights; default 0.1 (seed 001) */
  dropout?: number;
  /** weights of a query that may attend nothing; default `'uniform'` */
  emptyRows?: EmptyRows;
  /** keeps the weights of the last forward in `attn`; default false */
  keepAttention?: boolean;
}

/** Attention in h subspaces side by side (paper, section 3.2.2). */
export class MultiHeadedAttention extends Module {
  static override readonly transientNames = ['attn'];

  /** Projections of query, key, value and output, each `[dModel, dModel]`; they start equal. */
  linears: ModuleList<Linear>;
  /** Of the weights. */
  dropout: Dropout;
  /**
   * The weights of the last forward, after dropout, `[B, h, Sq, Sk]`, without graph; null unless
   * `keepAttention`. Freed by the next forward and by `dispose()`.
   */
  attn: Tensor | null = null;
  keepAttention: boolean;
  readonly emptyRows: EmptyRows;
  readonly h: number;
  readonly dModel: number;
  /** Size of each head's queries and keys. */
  readonly dK: number;

  /**
   * @param h number of heads
   * @param dModel size of the vectors
   * @throws RangeError unless h divides dModel
   */
  constructor(h: number, dModel: number, options: MultiHeadedAttentionOptions = {}) {
    super();
    checkOptions('MultiHeadedAttention', options, ['dropout', 'emptyRows', 'keepAttention']);
    this.h = checkInteger('MultiHeadedAttention', 'h', h, 1);
    this.dModel = checkInteger('MultiHeadedAttention', 'dModel', dModel, 1);
    if (dModel % h !== 0) {
      throw new RangeError(
        `MultiHeadedAttention: h must divide dModel, got ${h} heads for dModel ${dModel}`,
      );
    }
    this.dK = dModel / h;
    this.emptyRows = checkEmptyRows('MultiHeadedAttention', options.emptyRows ?? 'uniform');
    checkBoolean('MultiHeadedAttention', 'keepAttention', options.keepAttention);
    this.keepAttention = options.keepAttention ?? false;
    this.linears = intoClones(new Linear(dModel, dModel), 4);
    this.dropout = new Dropout(options.dropout ?? 0.1);
  }

  /**
   * @param query `[B, Sq, dModel]`
   * @param key `[B, Sk, dModel]`
   * @param value `[B, Sk, dModel]`
   * @param mask which keys each query may attend, see mask.ts; null: all
   * @returns `[B, Sq, dModel]`
   * @throws RangeError naming both shapes that do not fit, TypeError for dtypes and devices
   */
  override forward(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null = null): Tensor {
    const { batch, queries } = this.checkInputs(query, key, value);
    return tidy(() => {
      const heads = [query, key, value].map((input, index) =>
        this.linears.at(index).forward(input).view(batch, -1, this.h, this.dK).transpose(1, 2),
      ) as [Tensor, Tensor, Tensor];
      const [output, weights] = attention(...heads, {
        mask,
        dropout: this.dropout,
        emptyRows: this.emptyRows,
        needWeights: this.keepAttention,
      });
      this.storeAttention(weights);
      const joined = output.transpose(1, 2).reshape(batch, queries, this.dModel);
      return this.linears.at(3).forward(joined);
    });
  }

  private checkInputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
  ): { batch: number; queries: number } {
    const owner = 'MultiHeadedAttention';
    const { weight } = this.linears.at(0);
    checkFeatures(owner, 'query', query, this.dModel, weight);
    if (key !== query) checkFeatures(owner, 'key', key, this.dModel, weight);
    if (value !== key) checkFeatures(owner, 'value', value, this.dModel, weight);
    const [q, k, v] = [query.shape, key.shape, value.shape];
    const fit = q.length === 3 && k.length === 3 && q[0] === k[0] && k.join() === v.join();
    if (!fit) {
      throw new RangeError(
        `${owner}: query must be [B, Sq, ${this.dModel}], key and value [B, Sk, ${this.dModel}], ` +
          `got ${formatShape(q)}, ${formatShape(k)}, ${formatShape(v)}`,
      );
    }
    return { batch: q[0] as number, queries: q[1] as number };
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
