import { paddingMask, targetMask } from '../../nn/attention/mask.js';
import { checkArray, checkInteger } from '../../runtime/arguments.js';
import { tensor } from '../../tensor/create.js';
import { call } from '../../tensor/dispatch.js';
import { checkDevice, type DeviceChoice } from '../../tensor/device.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkTokenPairs, type TokenPair } from '../pairs.js';
import { disposePacked, packPairs, type PackedBatch } from './packedBatch.js';

/**
 * Sentence pairs as tensors, as in seed 001: B is the number of pairs, S the length of the longest
 * source and T that of the longest target, both with bos and eos.
 */
export interface Batch {
  /** Sources, padded: int64 `[B, S]`. */
  readonly src: Tensor;
  /** The decoder's input, targets without their last token: int64 `[B, T - 1]`. */
  readonly tgt: Tensor;
  /** The tokens to predict, targets without their first token: int64 `[B, T - 1]`. */
  readonly tgtY: Tensor;
  /** True at source positions that are not padding: bool `[B, 1, S]`. */
  readonly srcMask: Tensor;
  /** True where a target position may attend (no padding, no future): bool `[B, T - 1, T - 1]`. */
  readonly tgtMask: Tensor;
  /** Number of positions of `tgtY` that are not padding; the loss is divided by it. */
  readonly ntokens: number;
  /** The row numbers of the pairs in the file, in the order of the batch. */
  readonly rows: readonly number[];
  /**
   * The same pairs without padding, for models that accept them. Undefined on devices other than the
   * CPU, for pairs that padding changes (an empty source, the pad id within a sequence), and once
   * one of the tensors above was changed or replaced, because those take precedence. A copy such as
   * `{ ...batch, src: noised }` has none.
   */
  readonly packed?: PackedBatch;
  /** Frees the tensors. */
  dispose(): void;
  /** Calls {@link Batch.dispose} at the end of a block: `using batch = …`. */
  [Symbol.dispose](): void;
}

/**
 * Makes a batch.
 *
 * @param pairs at least one; every target has at least two ids
 * @param pad the id that pads the shorter sequences
 * @param device the device of the tensors; default `'cpu'`
 * @throws RangeError if there are no pairs, or a target has nothing to predict
 * @throws TypeError, RangeError for an invalid id
 */
export function makeBatch(
  pairs: readonly TokenPair[],
  pad: number,
  device: DeviceChoice = 'cpu',
): Batch {
  const owner = 'makeBatch';
  checkTokenPairs(owner, pairs);
  checkInteger(owner, 'pad', pad, 0);
  const place = checkDevice(owner, 'device', device);
  if (pairs.length === 0) throw new RangeError('makeBatch: a batch needs at least one pair');
  let ntokens = 0;
  for (const { tgt, row } of pairs) {
    if (tgt.length < 2) {
      throw new RangeError(`makeBatch: the target of row ${row} has nothing to predict after bos`);
    }
    for (let i = 1; i < tgt.length; i++) if (tgt[i] !== pad) ntokens++;
  }
  /** `skipped`: number of ids of each sequence that precede the given ones. */
  const filledUp = (part: 'src' | 'tgt', sequences: (readonly number[])[], skipped = 0) =>
    filled(sequences, pad, place, (id, index, position) =>
      checkInteger(owner, `pairs[${index}].${part}[${position + skipped}]`, id, 0),
    );
  const src = filledUp(
    'src',
    pairs.map((pair) => pair.src),
  );
  const tgt = filledUp(
    'tgt',
    pairs.map((pair) => pair.tgt.slice(0, -1)),
  );
  const tgtY = filledUp(
    'tgt',
    pairs.map((pair) => pair.tgt.slice(1)),
    1,
  );
  const tensors = { src, tgt, tgtY, srcMask: paddingMask(src, pad), tgtMask: targetMask(tgt, pad) };
  const packed = place === 'cpu' ? packPairs(pairs, pad) : null;
  const dispose = (): void => {
    for (const part of Object.values(tensors)) part.dispose();
    if (packed !== null) disposePacked(packed);
  };
  const rows = pairs.map(({ row }) => row);
  const batch: Batch = { ...tensors, ntokens, rows, dispose, [Symbol.dispose]: dispose };
  return packed === null ? batch : attachPacked(batch, tensors, packed);
}

type BatchTensors = Pick<Batch, 'src' | 'tgt' | 'tgtY' | 'srcMask' | 'tgtMask'>;

/**
 * Gives the batch its packed form, as long as its tensors are the ones that were packed. Not
 * enumerable, so that a copy with other tensors does not get it.
 */
function attachPacked(batch: Batch, tensors: BatchTensors, packed: PackedBatch): Batch {
  const names = Object.keys(tensors) as (keyof BatchTensors)[];
  const versions = names.map((name) => call('aten::_version', tensors[name]));
  const isUnchanged = () =>
    names.every(
      (name, index) =>
        batch[name] === tensors[name] && call('aten::_version', batch[name]) === versions[index],
    );
  return Object.defineProperty(batch, 'packed', {
    get: () => (isUnchanged() ? packed : undefined),
    configurable: true,
  });
}

/**
 * Stacks sequences as the rows of one tensor, padded with `pad` on the right.
 *
 * @param sequences at least one
 * @returns int64 `[B, longest]`
 * @throws TypeError, RangeError if there are no sequences, or for an invalid id
 */
export function padSequences(
  sequences: readonly (readonly number[])[],
  pad: number,
  device: DeviceChoice = 'cpu',
): Tensor {
  const owner = 'padSequences';
  checkArray(owner, 'sequences', sequences, 'an array of arrays of ids');
  checkInteger(owner, 'pad', pad, 0);
  checkDevice(owner, 'device', device);
  if (sequences.length === 0) throw new RangeError(`${owner}: sequences must not be empty`);
  for (let row = 0; row < sequences.length; row++) {
    checkArray(owner, `sequences[${row}]`, sequences[row], 'an array of ids');
  }
  return filled(sequences, pad, device, (id, row, column) =>
    checkInteger(owner, `sequences[${row}][${column}]`, id, 0),
  );
}

/** @param checked returns an id, or throws an error with its position */
function filled(
  sequences: readonly (readonly number[])[],
  pad: number,
  device: DeviceChoice,
  checked: (id: unknown, row: number, column: number) => number,
): Tensor {
  const width = sequences.reduce((most, { length }) => Math.max(most, length), 0);
  const ids = new BigInt64Array(sequences.length * width).fill(BigInt(pad));
  sequences.forEach((sequence, row) => {
    for (let column = 0; column < sequence.length; column++) {
      ids[row * width + column] = BigInt(checked(sequence[column], row, column));
    }
  });
  return tensor(ids, { device, shape: [sequences.length, width] });
}
