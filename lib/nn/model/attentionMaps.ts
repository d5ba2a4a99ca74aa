import { checkObject, describe } from '../../runtime/arguments.js';
import { noGrad } from '../../tensor/autograd.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { AttentionModule } from './layerStack.js';
import { keepModes } from '../module/modes.js';
import { MultiHeadedAttention } from '../attention/multiHeadedAttention.js';
import { Transformer } from './transformer.js';

/** Input of {@link attentionMaps}, such as a `Batch`. */
export interface AttentionMapsInput {
  /** source ids `[B, S]` */
  readonly src: Tensor;
  /** target ids `[B, T]` */
  readonly tgt: Tensor;
  /** as for `Transformer.forward`; default: no mask */
  readonly srcMask?: Tensor | null;
  /** as for `Transformer.forward`; default: no mask, so later positions are visible too */
  readonly tgtMask?: Tensor | null;
}

/** Attention weights, one tensor per layer; each row over the keys sums to 1. */
export interface AttentionMaps {
  /** the encoder's self-attention, each `[B, h, S, S]` */
  readonly encoder: readonly Tensor[];
  /** the decoder's self-attention, each `[B, h, T, T]` */
  readonly decoder: readonly Tensor[];
  /** attention from target positions to source positions, each `[B, h, T, S]` */
  readonly source: readonly Tensor[];
}

/**
 * Returns the attention weights of all layers for one forward, for example to plot them.
 * Runs without dropout and gradients, regardless of the model's mode, and leaves the model
 * unchanged. The caller owns the maps.
 *
 * ```ts
 * const { source } = attentionMaps(model, batch);
 * const lastLayer = source.at(-1)?.select(0, 0).mean(0).toArray(); // [T, S], heads averaged
 * ```
 *
 * @throws TypeError if `model` is not a Transformer, or has attention modules other than
 *   MultiHeadedAttention; and the errors of `Transformer.forward`
 */
export function attentionMaps(model: Transformer, input: AttentionMapsInput): AttentionMaps {
  if (!(model instanceof Transformer)) {
    throw new TypeError(`attentionMaps: model must be a Transformer, got ${describe(model)}`);
  }
  checkObject('attentionMaps', 'input', input, 'a Batch or { src, tgt, … }');
  const encoderLayers = [...model.encoder.layers];
  const decoderLayers = [...model.decoder.layers];
  const places = {
    encoder: encoderLayers.map(({ selfAttn }) => checked(selfAttn)),
    decoder: decoderLayers.map(({ selfAttn }) => checked(selfAttn)),
    source: decoderLayers.map(({ srcAttn }) => checked(srcAttn)),
  };
  const restoreModes = keepModes(model);
  const kept = new Map(
    Object.values(places)
      .flat()
      .map((module) => [module, { attn: module.attn, keepAttention: module.keepAttention }]),
  );
  try {
    for (const module of kept.keys()) Object.assign(module, { attn: null, keepAttention: true });
    model.eval();
    return tidy(() => {
      const { src, tgt, srcMask = null, tgtMask = null } = input;
      noGrad(() => model.forward(src, tgt, srcMask, tgtMask));
      // New tensors in the caller's scope instead of those stored in the modules.
      const maps = (modules: MultiHeadedAttention[]) =>
        modules.map(({ attn }) => (attn as Tensor).detach());
      return {
        encoder: maps(places.encoder),
        decoder: maps(places.decoder),
        source: maps(places.source),
      };
    });
  } finally {
    restoreModes();
    for (const [module, before] of kept) {
      module.attn?.dispose();
      Object.assign(module, before);
    }
  }
}

function checked(module: AttentionModule): MultiHeadedAttention {
  if (module instanceof MultiHeadedAttention) return module;
  throw new TypeError(
    `attentionMaps: every attention of the model must be a MultiHeadedAttention, ` +
      `got ${describe(module)}`,
  );
}
