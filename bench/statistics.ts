/** Statistics of lists of measurements. */

/** The middle value, or the mean of the two middle values of an even number. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('median: no values');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle]!;
  return sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
}

/** The smallest value that at least `share` of all values do not exceed. */
export function quantile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new RangeError('quantile: no values');
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

/** The largest `|a - b| / |b|` over both lists. */
export function largestRelativeDifference(a: readonly number[], b: readonly number[]): number {
  if (a.length !== b.length) throw new RangeError(`${a.length} values against ${b.length}`);
  return Math.max(...a.map((value, index) => Math.abs(value - b[index]!) / Math.abs(b[index]!)));
}
