import { checkOptions } from '../../runtime/arguments.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkModule } from '../check.js';
import { clones, intoClones } from '../module/clones.js';
import type { ModuleList } from '../module/containers.js';
import { finalNormOf, layerOptionNames } from './layerStack.js';
import type { AttentionModule, LayerOptions, StackOptions } from './layerStack.js';
import { sourceLayerMask } from '../packed/layerMask.js';
import { Module } from '../module/module.js';
import type { TensorModule } from '../module/module.js';
import type { Norm } from '../layers/norm.js';
import type { PackedMask } from '../packed/packedSequences.js';
import { rememberRegistered } from '../module/registration.js';
import { inStream, ResidualStream, takesStream } from './residualStream.js';
import { SublayerConnection } from './sublayerConnection.js';

/** Self-attention, then feed-forward, each in a residual connection (paper, section 3.1). */
export class EncoderLayer extends Module {
  static {
    takesStream(this);
  }

  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames: Readonly<Record<string, string>> = {
    selfAttn: 'self_attn',
    feedForward: 'feed_forward',
  };

  /** Among the source's positions; sublayer 0. In state dicts `self_attn`. */
  selfAttn: AttentionModule;
  /**
   * At each position alone, `[B, S, size]` to the same; sublayer 1. In state dicts `feed_forward`.
   */
  feedForward: TensorModule;
  /** Two residual connections, each with a norm and a dropout of its own; they start equal. */
  sublayers: ModuleList<SublayerConnection>;
  /** dModel */
  readonly size: number;

  /**
   * The modules given become parts of the layer; they are not copied.
   *
   * @param size dModel
   * @param selfAttn from queries, keys and values `[B, S, size]` to `[B, S, size]`
   * @param feedForward from `[B, S, size]` to the same
   * @throws TypeError for parts that are no modules; TypeError, RangeError for an option that
   *   SublayerConnection refuses
   */
  constructor(
    size: number,
    selfAttn: AttentionModule,
    feedForward: TensorModule,
    options: LayerOptions = {},
  ) {
    super();
    checkOptions('EncoderLayer', options, layerOptionNames);
    checkModule('EncoderLayer', 'selfAttn', selfAttn);
    checkModule('EncoderLayer', 'feedForward', feedForward);
    this.selfAttn = selfAttn;
    this.feedForward = feedForward;
    this.sublayers = intoClones(new SublayerConnection(size, options), 2);
    this.size = size;
    rememberRegistered(this);
  }

  /**
   * @param input `[B, S, size]`
   * @param mask which positions may be attended, usually `[B, 1, S]`; null: all
   * @returns `[B, S, size]`
   * @throws RangeError naming the shapes that do not fit, and for a mask of two dimensions;
   *   TypeError for dtypes and devices
   */
  override forward(input: Tensor, mask: Tensor | PackedMask | null): Tensor {
    const { selfAttn, feedForward, sublayers } = this;
    return tidy(() =>
      inStream(input, (x) => {
        const allowed = sourceLayerMask('EncoderLayer', 'mask', mask);
        return x
          .through(sublayers.at(0), (y) => selfAttn.forward(y, y, y, allowed))
          .through(sublayers.at(1), feedForward);
      }),
    );
  }
}

/** N layers, and a final norm unless the layers end with theirs (paper, section 3.1: N = 6). */
export class Encoder extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** N deep copies of the layer given: equal values at the start, no memory shared. */
  layers: ModuleList<EncoderLayer>;
  /** Behind the last layer; null when the layers end with norms of their own. */
  norm: Norm | null;

  /**
   * @param layer cloned N times; it stays the caller's own
   * @param N number of layers
   * @throws RangeError, TypeError for a count of layers or an option that is none
   */
  constructor(layer: EncoderLayer, N: number, options: StackOptions = {}) {
    super();
    this.layers = clones(layer, N);
    this.norm = finalNormOf('Encoder', layer, options);
    rememberRegistered(this);
  }

  /**
   * @param input `[B, S, dModel]`
   * @param mask which positions may be attended, usually `[B, 1, S]`; null: all
   * @returns `[B, S, dModel]`
   * @throws RangeError naming the shapes that do not fit, and for a mask of two dimensions;
   *   TypeError for dtypes and devices
   */
  override forward(input: Tensor, mask: Tensor | PackedMask | null): Tensor {
    return tidy(() => {
      // Once here instead of once a layer.
      const allowed = sourceLayerMask('Encoder', 'mask', mask);
      let x = ResidualStream.of(input);
      for (const layer of this.layers) x = x.through(layer, allowed);
      return (this.norm === null ? x : x.normed(this.norm)).sum();
    });
  }
}
