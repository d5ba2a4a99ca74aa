/** Checks that ids are within the table in which they are looked up. */
import { formatShape } from '../tensor/check.js';
import type { Device } from '../tensor/device.js';
import { callTensors } from '../tensor/dispatch.js';
import { movedTo } from '../tensor/movedTo.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import type { PackedSequences } from './packed/packedSequences.js';

interface IdRange {
  readonly low: number;
  readonly high: number;
}

/** Ranges of ids that were checked before they were moved, since reading from a GPU waits for it. */
const ranges = new WeakMap<Tensor, IdRange>();

function rangeOf(ids: Tensor): IdRange {
  const [least, greatest] = callTensors('aten::aminmax', ids) as [Tensor, Tensor];
  return { low: least.item(), high: greatest.item() };
}

/**
 * Moves ids to another device such that {@link checkIdRange} can check them without reading from
 * it. For ids that are not changed afterwards.
 *
 * @internal
 */
export function movedIds(device: Device, ids: Tensor): Tensor {
  const moved = movedTo(device, ids);
  if (moved !== ids) copyRange(moved, ids);
  return moved;
}

/** Records that `target` now contains the same ids as `ids`. @internal */
export function copyRange(target: Tensor, ids: Tensor): void {
  if (ids.numel === 0) return;
  ranges.set(
    target,
    tidy(() => rangeOf(ids)),
  );
}

/** Whether all ids are known, without reading from a device, to be within a table. @internal */
export function isKnownToFit(ids: Tensor, count: number): boolean {
  const range = ranges.get(ids);
  return range !== undefined && range.low >= 0 && range.high < count;
}

/**
 * Checks that all ids are in 0 to count - 1. The native kernels do not check: they read past the
 * table, or on CUDA destroy the device's context.
 *
 * @param placeOf describes the position of the `index`-th id; default: its indices
 * @throws RangeError with the id, its position and the size of the table
 */
export function checkIdRange(
  owner: string,
  name: string,
  ids: Tensor,
  count: number,
  placeOf = (index: number): string => formatShape(indicesOf(index, ids.shape)),
): void {
  if (ids.numel === 0) return;
  tidy(() => {
    const { low, high } = ranges.get(ids) ?? rangeOf(ids);
    if (low >= 0 && high < count) return;
    const id = low < 0 ? low : high;
    const index = (low < 0 ? ids.argmin() : ids.argmax()).item();
    throw new RangeError(
      `${owner}: ${name} holds the id ${id} at ${placeOf(index)}, ` +
        `but the table has ${count} entries (0 to ${count - 1}); ` +
        'use the tokenizer that the model was created for, and count its added tokens',
    );
  });
}

/** The position of an id in packed sequences: the sequence and the position within it. */
export function placeIn(sequences: PackedSequences): (index: number) => string {
  return (index) => {
    const offsets = sequences.offsets.toArray() as number[];
    // If empty sequences begin at the same offset, the last one is the one that is not empty.
    const sequence = offsets.findLastIndex((offset) => offset <= index);
    return formatShape([sequence, index - (offsets[sequence] as number)]);
  };
}

/** The indices of the `index`-th element in row-major order. */
export function indicesOf(index: number, shape: readonly number[]): number[] {
  const indices: number[] = [];
  let rest = index;
  for (const size of [...shape].reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return indices;
}
