import { PackedSequences } from '../../nn/packed/packedSequences.js';
import { tensor } from '../../tensor/create.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { TokenPair } from '../pairs.js';

/**
 * The pairs of a batch without padding, on the CPU: the concatenated tokens of all sequences.
 */
export interface PackedBatch {
  /** Sources: int64 `[source tokens]`. */
  readonly src: Tensor;
  /** The decoder's input, targets without their last token: int64 `[target tokens]`. */
  readonly tgt: Tensor;
  /** The tokens to predict, targets without their first token: int64 `[target tokens]`. */
  readonly tgtY: Tensor;
  /** Boundaries in `src`. */
  readonly srcSequences: PackedSequences;
  /** Boundaries in `tgt` and `tgtY`. */
  readonly tgtSequences: PackedSequences;
}

/**
 * Packs pairs that were already checked.
 *
 * @returns null if padding would change the meaning of a pair: with an empty source, or with the
 *   pad id in a sequence, which masks exclude
 */
export function packPairs(pairs: readonly TokenPair[], pad: number): PackedBatch | null {
  for (const { src, tgt } of pairs) {
    if (src.length === 0 || src.includes(pad) || tgt.includes(pad)) return null;
  }
  return {
    src: joined(pairs.map(({ src }) => src)),
    tgt: joined(pairs.map(({ tgt }) => tgt.slice(0, -1))),
    tgtY: joined(pairs.map(({ tgt }) => tgt.slice(1))),
    srcSequences: new PackedSequences(pairs.map(({ src }) => src.length)),
    tgtSequences: new PackedSequences(pairs.map(({ tgt }) => tgt.length - 1)),
  };
}

/** Frees the tensors of a packed batch. */
export function disposePacked(packed: PackedBatch): void {
  for (const part of Object.values(packed) as { dispose(): void }[]) part.dispose();
}

function joined(sequences: readonly (readonly number[])[]): Tensor {
  const count = sequences.reduce((sum, { length }) => sum + length, 0);
  const ids = new BigInt64Array(count);
  let next = 0;
  for (const sequence of sequences) for (const id of sequence) ids[next++] = BigInt(id);
  return tensor(ids);
}
