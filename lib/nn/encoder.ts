import { checkOptions } from '../runtime/options.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { clones, intoClones } from './clones.js';
import type { ModuleList } from './containers.js';
import { LayerNorm } from './layerNorm.js';
import { booleanMask } from './mask.js';
import { Module } from './module.js';
import type { TensorModule } from './module.js';
import { SublayerConnection } from './sublayerConnection.js';

/**
 * Any module that can stand for `MultiHeadedAttention` in a layer. Layers run in a `tidy`: what
 * such a module stores for later, it has to `keep`.
 */
export type AttentionModule = Module & {
  forward(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null): Tensor;
};

export interface LayerOptions {
  /** of each sublayer's result; default 0.1 */
  dropout?: number;
}

/** Self-attention, then feed-forward, each in a residual connection (paper, section 3.1). */
export class EncoderLayer extends Module {
  static override readonly stateNames: Readonly<Record<string, string>> = {
    selfAttn: 'self_attn',
    feedForward: 'feed_forward',
  };

  selfAttn: AttentionModule;
  feedForward: TensorModule;
  sublayers: ModuleList<SublayerConnection>;
  /** dModel */
  readonly size: number;

  /** The modules given become parts of the layer; they are not copied. */
  constructor(
    size: number,
    selfAttn: AttentionModule,
    feedForward: TensorModule,
    options: LayerOptions = {},
  ) {
    super();
    checkOptions('EncoderLayer', options, ['dropout']);
    this.selfAttn = selfAttn;
    this.feedForward = feedForward;
    this.sublayers = intoClones(new SublayerConnection(size, options), 2);
    this.size = size;
  }

  /**
   * @param input `[B, S, size]`
   * @param mask which positions may be attended, usually `[B, 1, S]`; null: all
   * @returns `[B, S, size]`
   */
  override forward(input: Tensor, mask: Tensor | null): Tensor {
    return tidy(() => {
      const attended = this.sublayers
        .at(0)
        .forward(input, (normed) => this.selfAttn.forward(normed, normed, normed, mask));
      return this.sublayers.at(1).forward(attended, this.feedForward);
    });
  }
}

/** N layers and a final norm. */
export class Encoder extends Module {
  layers: ModuleList<EncoderLayer>;
  norm: LayerNorm;

  /**
   * @param layer cloned N times; it stays the caller's own
   * @param N number of layers
   */
  constructor(layer: EncoderLayer, N: number) {
    super();
    this.layers = clones(layer, N);
    this.norm = new LayerNorm(layer.size);
  }

  /**
   * @param input `[B, S, dModel]`
   * @param mask which positions may be attended, usually `[B, 1, S]`; null: all
   * @returns `[B, S, dModel]`
   */
  override forward(input: Tensor, mask: Tensor | null): Tensor {
    return tidy(() => {
      // Once here instead of once a layer.
      const allowed = mask === null ? null : booleanMask('Encoder', mask);
      let output = input;
      for (const layer of this.layers) output = layer.forward(output, allowed);
      return this.norm.forward(output);
    });
  }
}
