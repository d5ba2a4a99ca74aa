/** What encoder and decoder have in common: options of layers, and the norm behind a stack. */
import { checkBoolean, checkOptions, describe, orDefault } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { ModuleList } from '../module/containers.js';
import type { Module } from '../module/module.js';
import { makeNorm } from '../layers/norm.js';
import type { Norm } from '../layers/norm.js';
import { isModule } from '../module/registration.js';
import type { SublayerConnection, SublayerConnectionOptions } from './sublayerConnection.js';
import type { PackedMask } from '../packed/packedSequences.js';

/**
 * Any module that can stand for `MultiHeadedAttention` in a layer. Layers run in a `tidy`: what
 * such a module stores for later, it has to `keep`. The mask is packed in `forwardPacked` only,
 * which models with modules of a user's own are not run by.
 */
export type AttentionModule = Module & {
  forward(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | PackedMask | null): Tensor;
};

/** Options of a layer are those of its residual connections. */
export type LayerOptions = SublayerConnectionOptions;

/** @internal */
export const layerOptionNames = ['dropout', 'order', 'norm'];

/** Options of `Encoder` and `Decoder`. */
export interface StackOptions {
  /**
   * a norm of the layers' kind behind the last layer; default: with layers of the order `'pre'`,
   * which leave the sum of all layers un-normed, but not with `'post'`
   */
  finalNorm?: boolean;
}

/** The norm behind a stack of clones of `layer`, or null. */
export function finalNormOf(
  owner: string,
  layer: { readonly size: number; readonly sublayers: ModuleList<SublayerConnection> },
  options: StackOptions,
): Norm | null {
  checkOptions(owner, options, ['finalNorm']);
  if (!isLayer(layer)) {
    throw new TypeError(
      `${owner}: layer must be ${owner === 'Encoder' ? 'an' : 'a'} ${owner}Layer, got ${describe(layer)}`,
    );
  }
  const { order, normConfig } = layer.sublayers.at(0);
  const finalNorm = orDefault(options.finalNorm, order === 'pre');
  return checkBoolean(owner, 'finalNorm', finalNorm) ? makeNorm(layer.size, normConfig) : null;
}

/** By its parts: layers of a user's own are as good. */
function isLayer(layer: unknown): boolean {
  return isModule(layer) && 'sublayers' in layer && isModule(layer.sublayers);
}
