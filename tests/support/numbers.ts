import { randn } from 'torchformer';
import type { Tensor } from 'torchformer';

/** All elements as plain numbers, in row-major order. */
export function numbers(tensor: Tensor): number[] {
  return Array.from(tensor.data() as Iterable<number | bigint>, Number);
}

/** The largest difference between elements; NaN or unequal shapes count as infinite. */
export function largestDifference(a: Tensor, b: Tensor): number {
  if (a.shape.join() !== b.shape.join()) return Infinity;
  const [left, right] = [numbers(a), numbers(b)];
  return left.reduce((largest, value, index) => {
    const difference = Math.abs(value - (right[index] as number));
    return Number.isNaN(difference) ? Infinity : Math.max(largest, difference);
  }, 0);
}

/** float64 values from a normal distribution; seed with `manualSeed` before. */
export function randomDoubles(...shape: number[]): Tensor {
  return randn(shape, { dtype: 'float64' });
}
