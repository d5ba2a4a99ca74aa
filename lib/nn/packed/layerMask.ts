import { formatShape } from '../../tensor/check.js';
import type { Tensor } from '../../tensor/tensor.js';
import { booleanMask } from '../attention/mask.js';
import { PackedMask } from './packedSequences.js';

/**
 * Converts a source mask to the form that layers pass on: bool, converted once for all layers, or
 * packed.
 *
 * @throws RangeError if the mask has two dimensions: `[B, S]` would be read as `[Sq, Sk]` if B
 *   equals S, and each sentence would get the padding of others
 */
export function sourceLayerMask(
  owner: string,
  name: string,
  mask: Tensor | PackedMask | null,
): Tensor | PackedMask | null {
  if (mask === null || mask instanceof PackedMask) return mask;
  const allowed = booleanMask(owner, mask);
  if (allowed.ndim !== 2) return allowed;
  throw new RangeError(
    `${owner}: ${name} must be [B, 1, S], [B|1, S, S] or [B|1, H|1, S|1, S], got ` +
      `${formatShape(allowed.shape)}: pass paddingMask(src, pad), or mask.unsqueeze(1) for a ` +
      'mask [B, S], mask.unsqueeze(0) for a mask [S, S]',
  );
}

/**
 * Converts a target mask to the form that layers pass on.
 *
 * @param input the target's vectors `[B, T, D]`, or an object with their shape
 * @throws RangeError if the mask has two dimensions and the first is B: `[B, T]`, or `[T, T]` if B
 *   equals T
 */
export function targetLayerMask(
  owner: string,
  name: string,
  mask: Tensor | PackedMask | null,
  input: { readonly shape: readonly number[] },
): Tensor | PackedMask | null {
  if (mask === null || mask instanceof PackedMask) return mask;
  const allowed = booleanMask(owner, mask);
  if (allowed.ndim !== 2) return allowed;
  const B = input.shape[0] as number;
  if (B > 1 && allowed.shape[0] === B) {
    throw new RangeError(
      `${owner}: ${name} must be [B|1, T|1, T] or [B|1, H|1, T|1, T] for ${B} targets, got ` +
        `${formatShape(allowed.shape)}, which may be [B, T]: pass targetMask(tgt, pad), or ` +
        'mask.unsqueeze(0) for a mask [T, T]',
    );
  }
  return allowed;
}
