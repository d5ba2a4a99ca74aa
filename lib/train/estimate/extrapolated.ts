/** A measured batch. */
export interface MeasuredBytes {
  readonly tokens: number;
  readonly bytes: number;
}

/**
 * Bytes of a batch with `tokens` tokens, on the line through two smaller ones: a part of the bytes, such as
 * weights in another dtype, does not grow with the batch.
 */
export function extrapolated(small: MeasuredBytes, larger: MeasuredBytes, tokens: number): number {
  const more = larger.tokens - small.tokens;
  const perToken =
    more > 0 ? Math.max(0, larger.bytes - small.bytes) / more : larger.bytes / larger.tokens;
  return Math.round(larger.bytes + perToken * Math.max(0, tokens - larger.tokens));
}
