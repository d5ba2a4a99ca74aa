import { grad, tensor, tidy } from 'torchformer';
import type { Tensor } from 'torchformer';

/**
 * Compares the gradients of `fn` with central finite differences, element by element.
 *
 * The outputs are reduced to one number by fixed uneven weights, so that errors in single
 * elements cannot cancel out.
 *
 * @param fn deterministic; draws from the generator only after seeding it itself
 * @param inputs float64 tensors, each gets its gradient checked
 * @returns the largest difference, relative to the largest gradient (at least 1)
 */
export function gradientError(
  fn: (...inputs: Tensor[]) => Tensor | Tensor[],
  inputs: readonly Tensor[],
  { step = 1e-5 } = {},
): number {
  for (const input of inputs) {
    if (input.dtype !== 'float64') throw new TypeError('finite differences need float64 inputs');
  }
  const leaves = inputs.map((input) => leaf(Array.from(input.data() as Float64Array), input.shape));
  const analytic = grad(weightedSum(fn(...leaves)), leaves, { allowUnused: true }).map(
    (gradient) => (gradient === null ? null : (gradient.data() as Float64Array)),
  );
  let largestError = 0;
  let largestGradient = 1;
  leaves.forEach((input, which) => {
    const values = Array.from(input.data() as Float64Array);
    values.forEach((value, index) => {
      const at = (shifted: number): number =>
        tidy(() => {
          const moved = leaf(values.with(index, shifted), input.shape);
          return weightedSum(fn(...leaves.with(which, moved))).item();
        });
      const numeric = (at(value + step) - at(value - step)) / (2 * step);
      const exact = analytic[which]?.[index] ?? 0;
      largestGradient = Math.max(largestGradient, Math.abs(numeric));
      // NaN must not hide behind a comparison that is false.
      const error = Math.abs(exact - numeric);
      largestError = Number.isNaN(error) ? Infinity : Math.max(largestError, error);
    });
  });
  return largestError / largestGradient;
}

function leaf(values: readonly number[], shape: readonly number[]): Tensor {
  return tensor(Float64Array.from(values), { requiresGrad: false }).reshape(shape).requiresGrad_();
}

function weightedSum(outputs: Tensor | Tensor[]): Tensor {
  const list = Array.isArray(outputs) ? outputs : [outputs];
  return list
    .map((output, position) => {
      const weights = Float64Array.from({ length: output.numel }, (_, index) =>
        Math.cos(1 + index * 1.7 + position),
      );
      return output.mul(tensor(weights).reshape(output.shape)).sum();
    })
    .reduce((sum, term) => sum.add(term));
}
