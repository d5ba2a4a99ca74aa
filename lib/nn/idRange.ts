/** Ids and the sizes of the tables that they are looked up in. */
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

/** Of ids that were looked at before they were moved: to ask a GPU is to wait for it. */
const ranges = new WeakMap<Tensor, IdRange>();

function rangeOf(ids: Tensor): IdRange {
  const [least, greatest] = callTensors('aten::aminmax', ids) as [Tensor, Tensor];
  return { low: least.item(), high: greatest.item() };
}

/**
 * Ids on another device that {@link checkIdRange} can check without asking it. For ids that nobody
 * changes afterwards.
 *
 * @internal
 */
export function movedIds(device: Device, ids: Tensor): Tensor {
  const moved = movedTo(device, ids);
  if (moved !== ids) copyRange(moved, ids);
  return moved;
}

/** Notes that `target` holds what is in `ids` from now on. @internal */
export function copyRange(target: Tensor, ids: Tensor): void {
  if (ids.numel === 0) return;
  ranges.set(
    target,
    tidy(() => rangeOf(ids)),
  );
}

/** Whether it is known, without asking a device, that all ids lie within a table. @internal */
export function isKnownToFit(ids: Tensor, count: number): boolean {
  const range = ranges.get(ids);
  return range !== undefined && range.low >= 0 && range.high < count;
}

/**
 * Refuses ids outside 0 to count - 1. Checked here because the native kernels read past the table
 * (CUDA: end the device's context) instead.
 *
 * @param placeOf where the `index`-th id is, in words; default: its indices
 * @throws RangeError naming the id, its position and the size of the table
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
        'is the tokenizer the one the model was made for, its added tokens counted?',
    );
  });
}

/** Where an id of packed sequences is: the sequence and the place in it, as if they were padded. */
export function placeIn(sequences: PackedSequences): (index: number) => string {
  return (index) => {
    const offsets = sequences.offsets.toArray() as number[];
    // Of empty sequences that begin there, the last one is not empty.
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
