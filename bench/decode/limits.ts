/** The least time that decoding can take on a processor: its products and the reading of its weights. */
import type { ModelSize } from '../sizes.js';
import { sourceLength, targetLength, type SearchCase } from './decodeModels.js';
import type { Precision } from './decoders.js';

/** Weights that are read, and operations for each row, in one pass over some layers. */
export interface Pass {
  readonly weights: number;
  readonly operations: number;
}

/** The encoder, with the keys and values that the decoder's layers make of its output. */
export function encoderPass({ N, dModel: d, dFf }: ModelSize, length: number): Pass {
  const weights = N * (4 * d * d + 2 * d * dFf + 2 * d * d);
  return { weights, operations: 2 * weights + N * 4 * d * length };
}

/** One token after `position` others: projections, feed-forward, generator, and both attentions. */
export function stepPass(
  { N, dModel: d, dFf, vocabSize }: ModelSize,
  position: number,
  length: number,
): Pass {
  const weights = N * (6 * d * d + 2 * d * dFf) + d * vocabSize;
  return { weights, operations: 2 * weights + N * 4 * d * (position + 1 + length) };
}

export const bytesPerWeight: Readonly<Record<Precision, number>> = {
  float32: 4,
  bfloat16: 2,
  int8: 1,
};

/** What was measured of the processor. */
export interface ProcessorRates {
  /** Bytes per second, when as many bytes as a step's weights have are read again and again. */
  readonly bytesPerSecond: number;
  /** Float32 operations per second on registers; null if unknown. */
  readonly peak: number | null;
}

/**
 * Target tokens per second that no decoder exceeds. Reading and computing overlap at best, so that a pass
 * takes the longer of both. The peak does not bound low precision, which has instructions of its own: there
 * only reading counts.
 */
export function tokenLimit(
  model: ModelSize,
  { beam, batch }: SearchCase,
  precision: Precision,
  { bytesPerSecond, peak }: ProcessorRates,
): number {
  const secondsOf = ({ weights, operations }: Pass, rows: number): number => {
    const reading = (weights * bytesPerWeight[precision]) / bytesPerSecond;
    const computes = precision === 'float32' && peak !== null;
    return Math.max(reading, computes ? (rows * operations) / peak : 0);
  };
  let seconds = secondsOf(encoderPass(model, sourceLength), batch * sourceLength);
  for (let position = 0; position < targetLength; position++) {
    seconds += secondsOf(stepPass(model, position, sourceLength), batch * beam);
  }
  return (batch * targetLength) / seconds;
}
