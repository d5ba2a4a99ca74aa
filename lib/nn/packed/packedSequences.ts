/**
 * Batches without padding: the tokens of all sequences one after the other, `[tokens, …]`. All
 * layers but attention and positions treat each token alone and take such rows as they are.
 */
import { checkArray, checkBoolean, checkInstance, checkInteger } from '../../runtime/arguments.js';
import { formatShape } from '../../tensor/check.js';
import { tensor } from '../../tensor/create.js';
import { checkDevice, type DeviceChoice } from '../../tensor/device.js';
import { movedTo } from '../../tensor/movedTo.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';

/** Rows are counted in 32 bits in the masks of dropout; a batch is far from it. */
const mostTokens = 2 ** 31 - 1;

/** Where each sequence of packed rows begins and ends. */
export class PackedSequences {
  /**
   * Rows before each sequence, and the number of all rows at the end: `[sequences + 1]`, int64 on the
   * CPU, int32 on a GPU.
   */
  readonly offsets: Tensor;
  /** The place of each row within its sequence: int64 `[tokens]`. */
  readonly positions: Tensor;
  /** Number of rows. */
  readonly tokens: number;
  /** Length of the longest sequence. */
  readonly longest: number;

  /**
   * @param lengths of the sequences, in their order
   * @throws TypeError, RangeError unless these are integers of at least 0
   */
  constructor(lengths: readonly number[]) {
    checkArray('PackedSequences', 'lengths', lengths, 'an array of lengths');
    const offsets = new BigInt64Array(lengths.length + 1);
    let tokens = 0;
    let longest = 0;
    for (let index = 0; index < lengths.length; index++) {
      const length = checkInteger('PackedSequences', `lengths[${index}]`, lengths[index], 0);
      tokens += length;
      if (tokens > mostTokens) {
        throw new RangeError(
          `PackedSequences: more than ${mostTokens} tokens at lengths[${index}]`,
        );
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
   * The same sequences on a device, without waiting for it; this very object if they are there.
   *
   * @throws TypeError, RangeError, TorchError ERR_CUDA_UNAVAILABLE for a device that is not there
   */
  to(device: DeviceChoice): PackedSequences {
    const place = checkDevice('PackedSequences.to', 'device', device);
    if (this.offsets.device === place) return this;
    // libtorch's kernels for GPUs count in 32 bits.
    const dtype = place === 'cpu' ? 'int64' : 'int32';
    return PackedSequences.of({
      offsets: tidy(() => movedTo(place, this.offsets.to({ dtype }))),
      positions: movedTo(place, this.positions),
      tokens: this.tokens,
      longest: this.longest,
    });
  }

  /** Sequences that are laid out already. @internal */
  static of(parts: Pick<PackedSequences, 'offsets' | 'positions' | 'tokens' | 'longest'>) {
    return Object.assign(Object.create(PackedSequences.prototype) as PackedSequences, parts);
  }

  /** Frees the tensors. */
  dispose(): void {
    this.offsets.dispose();
    this.positions.dispose();
  }

  /** As {@link PackedSequences.dispose}, for `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * In the place of a mask: queries and keys are packed, and each query may attend to the keys of
 * the sequence with its number.
 */
export class PackedMask {
  /** Sequences of the queries. */
  readonly queries: PackedSequences;
  /** As many sequences, of the keys. */
  readonly keys: PackedSequences;
  /** Whether a query sees only the keys up to its own place; queries and keys are then the same. */
  readonly causal: boolean;

  /**
   * @param causal for self-attention in a decoder; default false
   * @throws TypeError, RangeError for what is no PackedSequences, another number of sequences, or
   *   causal between sequences of different lengths
   */
  constructor(queries: PackedSequences, keys: PackedSequences, causal = false) {
    const owner = 'PackedMask';
    const wayOut = 'new PackedSequences(lengths)';
    checkInstance(owner, 'queries', queries, PackedSequences, wayOut);
    checkInstance(owner, 'keys', keys, PackedSequences, wayOut);
    checkBoolean(owner, 'causal', causal);
    const [count, others] = [queries.offsets.numel - 1, keys.offsets.numel - 1];
    if (count !== others) {
      throw new RangeError(
        `${owner}: queries and keys must be as many sequences, got ${count} and ${others}`,
      );
    }
    const isSame = () => tidy(() => queries.offsets.eq(keys.offsets).all().item());
    if (causal && queries !== keys && !isSame()) {
      throw new RangeError(
        `${owner}: causal attention is within a sequence, but queries and keys differ in length`,
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
