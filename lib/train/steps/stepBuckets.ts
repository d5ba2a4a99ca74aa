/** Batches padded to common sizes, so that a recorded step fits many of them. */
import type { PackedBatch } from '../../data/batching/packedBatch.js';
import { checkIdRange, copyRange, placeIn } from '../../nn/idRange.js';
import { PackedSequences } from '../../nn/packed/packedSequences.js';
import { full, zeros } from '../../tensor/create.js';
import type { Device } from '../../tensor/device.js';
import { movedTo } from '../../tensor/movedTo.js';
import { noGrad } from '../../tensor/autograd.js';
import { keep, tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';

/** Sizes of the packed batches of one recorded step. */
export interface StepBucket {
  readonly srcTokens: number;
  readonly tgtTokens: number;
  readonly srcLongest: number;
  readonly tgtLongest: number;
  /** The sequences of the batch, plus fillers that are empty or consist of pad ids. */
  readonly sequences: number;
}

/** At most an eighth more: some work on unused rows in exchange for fewer recordings. */
function roundedUp(size: number): number {
  const granule = Math.max(16, 2 ** Math.floor(Math.log2(Math.max(1, size))) / 8);
  return Math.ceil(size / granule) * granule;
}

/**
 * Returns the bucket of a batch.
 *
 * @param mostPositions length of the model's position tables; no sequence is made longer
 */
export function bucketOf(
  { srcSequences, tgtSequences }: PackedBatch,
  mostPositions = Infinity,
): StepBucket {
  const [srcTokens, tgtTokens] = [roundedUp(srcSequences.tokens), roundedUp(tgtSequences.tokens)];
  // The model refuses a sequence that is already too long.
  const longest = (given: number) => Math.max(given, Math.min(roundedUp(given), mostPositions));
  const [srcLongest, tgtLongest] = [longest(srcSequences.longest), longest(tgtSequences.longest)];
  const fillers = Math.max(
    Math.ceil((srcTokens - srcSequences.tokens) / srcLongest),
    Math.ceil((tgtTokens - tgtSequences.tokens) / tgtLongest),
  );
  const sequences = roundedUp(srcSequences.offsets.numel - 1 + fillers);
  return { srcTokens, tgtTokens, srcLongest, tgtLongest, sequences };
}

/** The tensors that a recorded step reads, on its device. Their memory does not move. */
export class BucketInputs {
  readonly bucket: StepBucket;
  /** Ids `[srcTokens]`, `[tgtTokens]`, `[tgtTokens]`; fillers have the pad id. */
  readonly src: Tensor;
  readonly tgt: Tensor;
  readonly tgtY: Tensor;
  readonly srcSequences: PackedSequences;
  readonly tgtSequences: PackedSequences;
  readonly #pad: number;

  constructor(bucket: StepBucket, pad: number, device: Device) {
    this.bucket = bucket;
    this.#pad = pad;
    const ids = (count: number) => keep(full([count], pad, { dtype: 'int64', device }));
    this.src = ids(bucket.srcTokens);
    this.tgt = ids(bucket.tgtTokens);
    this.tgtY = ids(bucket.tgtTokens);
    const dtype = device === 'cpu' ? 'int64' : 'int32';
    const sequences = (tokens: number, longest: number) =>
      PackedSequences.of({
        offsets: keep(zeros([bucket.sequences + 1], { dtype, device })),
        positions: keep(zeros([tokens], { dtype: 'int64', device })),
        tokens,
        longest,
      });
    this.srcSequences = sequences(bucket.srcTokens, bucket.srcLongest);
    this.tgtSequences = sequences(bucket.tgtTokens, bucket.tgtLongest);
  }

  /**
   * Copies a batch of this bucket into the tensors.
   *
   * @throws RangeError if an id is outside the tables, which a recorded step does not check
   */
  load(packed: PackedBatch, tables: { src: number; tgt: number }): void {
    const [inSource, inTarget] = [placeIn(packed.srcSequences), placeIn(packed.tgtSequences)];
    checkIdRange('Trainer.fit', 'src', packed.src, tables.src, inSource);
    checkIdRange('Trainer.fit', 'tgt', packed.tgt, tables.tgt, inTarget);
    checkIdRange('Trainer.fit', 'tgtY', packed.tgtY, tables.tgt, inTarget);
    this.#loadIds(this.src, packed.src);
    this.#loadIds(this.tgt, packed.tgt);
    this.#loadIds(this.tgtY, packed.tgtY);
    this.#loadSequences(this.srcSequences, packed.srcSequences);
    this.#loadSequences(this.tgtSequences, packed.tgtSequences);
  }

  #loadIds(target: Tensor, ids: Tensor): void {
    tidy(() => {
      const filled = full([target.numel], this.#pad, { dtype: 'int64' });
      filled.narrow(0, 0, ids.numel).copy_(ids);
      copyRange(target, filled);
      copyInto(target, filled);
    });
  }

  #loadSequences(target: PackedSequences, given: PackedSequences): void {
    const offsets = given.offsets.toArray() as number[];
    const lengths = offsets.slice(1).map((end, index) => end - (offsets[index] as number));
    // Fillers must not exceed the maximum length of a sequence.
    let left = target.tokens - given.tokens;
    while (lengths.length < target.offsets.numel - 1) {
      const length = Math.min(left, target.longest);
      lengths.push(length);
      left -= length;
    }
    using filled = new PackedSequences(lengths);
    tidy(() => {
      copyInto(target.offsets, filled.offsets.to({ dtype: target.offsets.dtype }));
      copyInto(target.positions, filled.positions);
    });
  }

  /** Frees the tensors. */
  dispose(): void {
    for (const part of [this.src, this.tgt, this.tgtY, this.srcSequences, this.tgtSequences]) {
      part.dispose();
    }
  }
}

/** Copies without waiting for the target's device. */
function copyInto(target: Tensor, source: Tensor): void {
  noGrad(() => target.copy_(movedTo(target.device, source)));
}
