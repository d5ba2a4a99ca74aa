import { checkOptions } from '../runtime/options.js';
import type { Tensor } from '../tensor/tensor.js';
import { Dropout } from './dropout.js';
import { LayerNorm } from './layerNorm.js';
import { Module } from './module.js';

export interface SublayerConnectionOptions {
  /** of the sublayer's result; default 0.1 */
  dropout?: number;
}

/**
 * A residual connection around any sublayer: x + dropout(sublayer(norm(x))).
 *
 * The norm comes first, as in seed 001; the paper (section 5.4 and 3.1) norms the sum instead.
 */
export class SublayerConnection extends Module {
  norm: LayerNorm;
  dropout: Dropout;

  /** @param size dModel */
  constructor(size: number, options: SublayerConnectionOptions = {}) {
    super();
    checkOptions('SublayerConnection', options, ['dropout']);
    this.norm = new LayerNorm(size);
    this.dropout = new Dropout(options.dropout ?? 0.1);
  }

  /**
   * @param input `[B, S, size]`
   * @param sublayer any module or function from `[B, S, size]` to the same shape
   * @returns `[B, S, size]`
   */
  override forward(
    input: Tensor,
    sublayer: { forward(input: Tensor): Tensor } | ((input: Tensor) => Tensor),
  ): Tensor {
    const normed = this.norm.forward(input);
    const result = typeof sublayer === 'function' ? sublayer(normed) : sublayer.forward(normed);
    return input.add(this.dropout.forward(result));
  }
}
