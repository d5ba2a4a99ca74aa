import type { Tensor } from '../../tensor/tensor.js';
import { booleanMask } from '../attention/mask.js';
import { PackedMask } from './packedSequences.js';

/** A mask in the form that layers hand on: booleans, made once for all layers, or packed. */
export function layerMask(
  owner: string,
  mask: Tensor | PackedMask | null,
): Tensor | PackedMask | null {
  return mask === null || mask instanceof PackedMask ? mask : booleanMask(owner, mask);
}
