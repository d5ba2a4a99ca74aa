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

/** Self-attention and feed-forward, each in a residual connection (paper, section 3.1). */
export class EncoderLayer extends Module {
  static {
    takesStream(this);
  }

  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames: Readonly<Record<string, string>> = {
    selfAttn: 'self_attn',
    feedForward: 'feed_forward',
  };

  /** Self-attention of the source; sublayer 0. In state dicts `self_attn`. */
  selfAttn: AttentionModule;
  /**
   * Feed-forward at each position, `[B, S, size]` to the same shape; sublayer 1. In state dicts
   * `feed_forward`.
   */
  feedForward: TensorModule;
  /** Two residual connections, each with its own norm and dropout; initially equal. */
  sublayers: ModuleList<SublayerConnection>;
  /** dModel */
  readonly size: number;

  /**
   * The given modules become submodules of the layer; they are not copied.
   *
   * @param size dModel
   * @param selfAttn maps queries, keys and values `[B, S, size]` to `[B, S, size]`
   * @param feedForward maps `[B, S, size]` to the same shape
   * @throws TypeError if one of them is not a Module; TypeError, RangeError for an invalid option of
   *   SublayerConnection
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
   * @param mask the positions that may be attended to, usually `[B, 1, S]`; null: all
   * @returns `[B, S, size]`
   * @throws RangeError if shapes do not match, or `mask` has two dimensions; TypeError or TorchError
   *   ERR_DEVICE if dtypes or devices differ
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

/** N layers, and a final norm unless the layers end with one (paper, section 3.1: N = 6). */
export class Encoder extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** N deep copies of the given layer, with equal initial values but no shared memory. */
  layers: ModuleList<EncoderLayer>;
  /** Applied after the last layer; null if the layers end with a norm. */
  norm: Norm | null;

  /**
   * @param layer cloned N times; the caller keeps the original
   * @param N number of layers
   * @throws RangeError, TypeError for an invalid number of layers or option
   */
  constructor(layer: EncoderLayer, N: number, options: StackOptions = {}) {
    super();
    this.layers = clones(layer, N);
    this.norm = finalNormOf('Encoder', layer, options);
    rememberRegistered(this);
  }

  /**
   * @param input `[B, S, dModel]`
   * @param mask the positions that may be attended to, usually `[B, 1, S]`; null: all
   * @returns `[B, S, dModel]`
   * @throws RangeError if shapes do not match, or `mask` has two dimensions; TypeError or TorchError
   *   ERR_DEVICE if dtypes or devices differ
   */
  override forward(input: Tensor, mask: Tensor | PackedMask | null): Tensor {
    return tidy(() => {
      // Converted once here rather than in each layer.
      const allowed = sourceLayerMask('Encoder', 'mask', mask);
      let x = ResidualStream.of(input);
      for (const layer of this.layers) x = x.through(layer, allowed);
      return (this.norm === null ? x : x.normed(this.norm)).sum();
    });
  }
}
