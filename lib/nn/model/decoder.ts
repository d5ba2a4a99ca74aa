import { checkOptions } from '../../runtime/arguments.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkModule } from '../check.js';
import { clones, intoClones } from '../module/clones.js';
import type { ModuleList } from '../module/containers.js';
import { finalNormOf, layerOptionNames } from './layerStack.js';
import type { AttentionModule, LayerOptions, StackOptions } from './layerStack.js';
import { sourceLayerMask, targetLayerMask } from '../packed/layerMask.js';
import { rejectInvertedCausal } from '../attention/mask.js';
import { Module } from '../module/module.js';
import type { TensorModule } from '../module/module.js';
import type { Norm } from '../layers/norm.js';
import { PackedMask } from '../packed/packedSequences.js';
import { rememberRegistered } from '../module/registration.js';
import { inStream, ResidualStream, takesStream } from './residualStream.js';
import { SublayerConnection } from './sublayerConnection.js';

/**
 * Masked self-attention, attention to the encoder's output and feed-forward, each in a residual
 * connection (paper, section 3.1).
 */
export class DecoderLayer extends Module {
  static {
    takesStream(this);
  }

  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames: Readonly<Record<string, string>> = {
    selfAttn: 'self_attn',
    srcAttn: 'src_attn',
    feedForward: 'feed_forward',
  };

  /** Self-attention of the target; sublayer 0. In state dicts `self_attn`. */
  selfAttn: AttentionModule;
  /** Attention from the target to the encoder's output; sublayer 1. In state dicts `src_attn`. */
  srcAttn: AttentionModule;
  /**
   * Feed-forward at each position, `[B, T, size]` to the same shape; sublayer 2. In state dicts
   * `feed_forward`.
   */
  feedForward: TensorModule;
  /** Three residual connections, each with its own norm and dropout; initially equal. */
  sublayers: ModuleList<SublayerConnection>;
  /** dModel */
  readonly size: number;

  /**
   * The given modules become submodules of the layer; they are not copied.
   *
   * @param size dModel
   * @param selfAttn maps queries, keys and values `[B, T, size]` to `[B, T, size]`
   * @param srcAttn maps queries `[B, T, size]`, keys and values `[B, S, size]` to `[B, T, size]`
   * @param feedForward maps `[B, T, size]` to the same shape
   * @throws TypeError if one of them is not a Module; TypeError, RangeError for an invalid option of
   *   SublayerConnection
   */
  constructor(
    size: number,
    selfAttn: AttentionModule,
    srcAttn: AttentionModule,
    feedForward: TensorModule,
    options: LayerOptions = {},
  ) {
    super();
    checkOptions('DecoderLayer', options, layerOptionNames);
    checkModule('DecoderLayer', 'selfAttn', selfAttn);
    checkModule('DecoderLayer', 'srcAttn', srcAttn);
    checkModule('DecoderLayer', 'feedForward', feedForward);
    this.selfAttn = selfAttn;
    this.srcAttn = srcAttn;
    this.feedForward = feedForward;
    this.sublayers = intoClones(new SublayerConnection(size, options), 3);
    this.size = size;
    rememberRegistered(this);
  }

  /**
   * @param input `[B, T, size]`
   * @param memory the encoder's output, `[B, S, size]`
   * @param srcMask the positions of `memory` that may be attended to, usually `[B, 1, S]`; null: all
   * @param tgtMask the target positions that each may attend to, usually `[B, T, T]`; null: all
   * @returns `[B, T, size]`
   * @throws RangeError if shapes do not match, `srcMask` has two dimensions, or `tgtMask` has two and
   *   B equals T; TypeError or TorchError ERR_DEVICE if dtypes or devices differ
   */
  override forward(
    input: Tensor,
    memory: Tensor,
    srcMask: Tensor | PackedMask | null,
    tgtMask: Tensor | PackedMask | null,
  ): Tensor {
    const { selfAttn, srcAttn, feedForward, sublayers } = this;
    return tidy(() =>
      inStream(input, (x) => {
        const allowedSource = sourceLayerMask('DecoderLayer', 'srcMask', srcMask);
        const allowedTarget = targetLayerMask('DecoderLayer', 'tgtMask', tgtMask, x);
        return x
          .through(sublayers.at(0), (y) => selfAttn.forward(y, y, y, allowedTarget))
          .through(sublayers.at(1), (y) => srcAttn.forward(y, memory, memory, allowedSource))
          .through(sublayers.at(2), feedForward);
      }),
    );
  }
}

/** N layers, and a final norm unless the layers end with one (paper, section 3.1: N = 6). */
export class Decoder extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** N deep copies of the given layer, with equal initial values but no shared memory. */
  layers: ModuleList<DecoderLayer>;
  /** Applied after the last layer; null if the layers end with a norm. */
  norm: Norm | null;

  /**
   * @param layer cloned N times; the caller keeps the original
   * @param N number of layers
   * @throws RangeError, TypeError for an invalid number of layers or option
   */
  constructor(layer: DecoderLayer, N: number, options: StackOptions = {}) {
    super();
    this.layers = clones(layer, N);
    this.norm = finalNormOf('Decoder', layer, options);
    rememberRegistered(this);
  }

  /**
   * @param input `[B, T, dModel]`
   * @param memory the encoder's output, `[B, S, dModel]`
   * @param srcMask the positions of `memory` that may be attended to, usually `[B, 1, S]`; null: all
   * @param tgtMask the target positions that each may attend to, usually `[B, T, T]`; null: all
   * @returns `[B, T, dModel]`
   * @throws RangeError if shapes do not match, `srcMask` has two dimensions, or `tgtMask` has two and
   *   B equals T; TypeError or TorchError ERR_DEVICE if dtypes or devices differ; TypeError for a
   *   `tgtMask` of the opposite convention, if it can be detected
   */
  override forward(
    input: Tensor,
    memory: Tensor,
    srcMask: Tensor | PackedMask | null,
    tgtMask: Tensor | PackedMask | null,
  ): Tensor {
    return tidy(() => {
      let x = ResidualStream.of(input);
      const allowedSource = sourceLayerMask('Decoder', 'srcMask', srcMask);
      const allowedTarget = targetLayerMask('Decoder', 'tgtMask', tgtMask, x);
      if (allowedTarget !== null && !(allowedTarget instanceof PackedMask)) {
        rejectInvertedCausal('Decoder', 'tgtMask', allowedTarget);
      }
      for (const layer of this.layers) x = x.through(layer, memory, allowedSource, allowedTarget);
      return (this.norm === null ? x : x.normed(this.norm)).sum();
    });
  }
}
