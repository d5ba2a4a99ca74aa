/**
 * Batches without padding: the tokens of all sequences concatenated, `[tokens, …]`. All layers
 * except attention and positions treat each token independently and accept such rows unchanged.
 */
import { checkArray, checkBoolean, checkInstance, checkInteger } from '../../runtime/arguments.js';
import { formatShape } from '../../tensor/check.js';
import { tensor } from '../../tensor/create.js';
import { checkDevice, type DeviceChoice } from '../../tensor/device.js';
import { movedTo } from '../../tensor/movedTo.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';

/** Dropout masks count rows in 32 bits; real batches are far smaller. */
const maxTokens = 2 ** 31 - 1;

/** The boundaries of the sequences in packed rows. */
export class PackedSequences {
  /**
   * First row of each sequence, followed by the total number of rows: `[sequences + 1]`, int64 on the
   * CPU, int32 on a GPU.
   */
  readonly offsets: Tensor;
  /** Position of each row within its sequence: int64 `[tokens]`. */
  readonly positions: Tensor;
  /** Number of rows. */
  readonly tokens: number;
  /** Length of the longest sequence. */
  readonly longest: number;

  /**
   * @param lengths lengths of the sequences, in order
   * @throws TypeError, RangeError unless all are non-negative integers
   */
  constructor(lengths: readonly number[]) {
    checkArray('PackedSequences', 'lengths', lengths, 'an array of lengths');
    const offsets = new BigInt64Array(lengths.length + 1);
    let tokens = 0;
    let longest = 0;
    for (let index = 0; index < lengths.length; index++) {
      const length = checkInteger('PackedSequences', `lengths[${index}]`, lengths[index], 0);
      tokens += length;
      if (tokens > maxTokens) {
        throw new RangeError(`PackedSequences: more than ${maxTokens} tokens at lengths[${index}]`);
      }
      longest = Math.max(longest, length);
      offsets[index + 1] = BigInt(tokens);
    }
    const positions = new BigInt64Array(tokens);
    let row = 0;
    for (const length of lengths) {
      for (let position = 0; position < length; position++) positions[row++] = BigInt(position);
    }
    this.offsets = tensor(offsets);
    this.positions = tensor(positions);
    this.tokens = tokens;
    this.longest = longest;
  }

  /**
   * Copies the sequences to a device, without waiting for it; returns this object if they are there.
   *
   * @throws TypeError, RangeError, TorchError ERR_CUDA_UNAVAILABLE if there is no such device
   */
  to(device: DeviceChoice): PackedSequences {
    const place = checkDevice('PackedSequences.to', 'device', device);
    if (this.offsets.device === place) return this;
    // libtorch's GPU kernels need 32-bit offsets.
    const dtype = place === 'cpu' ? 'int64' : 'int32';
    return PackedSequences.of({
      offsets: tidy(() => movedTo(place, this.offsets.to({ dtype }))),
      positions: movedTo(place, this.positions),
      tokens: this.tokens,
      longest: this.longest,
    });
  }

  /** Creates an object from existing tensors. @internal */
  static of(parts: Pick<PackedSequences, 'offsets' | 'positions' | 'tokens' | 'longest'>) {
    return Object.assign(Object.create(PackedSequences.prototype) as PackedSequences, parts);
  }

  /** Frees the tensors. */
  dispose(): void {
    this.offsets.dispose();
    this.positions.dispose();
  }

  /** Same as {@link PackedSequences.dispose}, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * Replaces a mask if queries and keys are packed: each query may attend to the keys of the sequence
 * with the same index.
 */
export class PackedMask {
  /** Sequences of the queries. */
  readonly queries: PackedSequences;
  /** Sequences of the keys, as many as of the queries. */
  readonly keys: PackedSequences;
  /** Whether a query sees only keys up to its own position; both then have the same sequences. */
  readonly causal: boolean;

  /**
   * @param causal for self-attention in a decoder; default false
   * @throws TypeError if `queries` or `keys` is not a PackedSequences; RangeError if the numbers of
   *   sequences differ, or `causal` is true and lengths differ
   */
  constructor(queries: PackedSequences, keys: PackedSequences, causal = false) {
    const owner = 'PackedMask';
    const hint = 'new PackedSequences(lengths)';
    checkInstance(owner, 'queries', queries, PackedSequences, hint);
    checkInstance(owner, 'keys', keys, PackedSequences, hint);
    checkBoolean(owner, 'causal', causal);
    const [count, others] = [queries.offsets.numel - 1, keys.offsets.numel - 1];
    if (count !== others) {
      throw new RangeError(
        `${owner}: queries and keys must have the same number of sequences, got ${count} and ${others}`,
      );
    }
    const isSame = () => tidy(() => queries.offsets.eq(keys.offsets).all().item());
    if (causal && queries !== keys && !isSame()) {
      throw new RangeError(
        `${owner}: causal attention needs queries and keys of equal lengths, but they differ`,
      );
    }
    this.queries = queries;
    this.keys = keys;
    this.causal = causal;
  }
}

/** @throws RangeError unless `rows` is `[tokens, …]` of these sequences */
export function checkPackedRows(
  owner: string,
  name: string,
  rows: Tensor,
  sequences: PackedSequences,
): void {
  const { shape } = rows;
  if (shape[0] === sequences.tokens) return;
  throw new RangeError(
    `${owner}: ${name} must have the ${sequences.tokens} rows of its packed sequences, ` +
      `got ${formatShape(shape)}`,
  );
}
