/** Common code of encoder and decoder: layer options and the final norm. */
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
 * Any module that can replace `MultiHeadedAttention` in a layer. Layers run in a `tidy`, so such a
 * module must `keep` tensors that it stores. The mask is packed only in `forwardPacked`, which
 * rejects models with user-defined modules.
 */
export type AttentionModule = Module & {
  forward(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | PackedMask | null): Tensor;
};

/** Options of a layer, which are those of its residual connections. */
export type LayerOptions = SublayerConnectionOptions;

/** @internal */
export const layerOptionNames = ['dropout', 'order', 'norm'];

/** Options of `Encoder` and `Decoder`. */
export interface StackOptions {
  /**
   * add a norm of the same kind as in the layers after the last layer; default: true for layers of
   * order `'pre'`, whose output is not normalized, false for `'post'`
   */
  finalNorm?: boolean;
}

/** The norm after a stack of clones of `layer`, or null. */
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

/** Checks members, not the class, so that user-defined layers are accepted. */
function isLayer(layer: unknown): boolean {
  return isModule(layer) && 'sublayers' in layer && isModule(layer.sublayers);
}
