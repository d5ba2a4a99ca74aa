/** Checks that all participants learn the same. */
import { largestRelativeDifference } from '../statistics.js';

/** Losses with dropout 0, from the same weights on the same batches. */
export interface LossComparison {
  readonly losses: Readonly<Record<string, readonly number[]>>;
  /** Largest relative difference of any loss from that of the seed's code. */
  readonly differences: Readonly<Record<string, number>>;
  /** Losses that exceed their tolerance or could not be compared. */
  readonly faults: readonly string[];
}

/** Tolerances of our losses, relative to the seed's in float32. */
export const lossTolerances: Readonly<Record<string, number>> = {
  'ours float32': 2e-5,
  'ours bfloat16': 1e-3,
};

/** Compares all with the losses of `seed`; ours must be within the tolerances. */
export function compareLosses(losses: Readonly<Record<string, readonly number[]>>): LossComparison {
  const { seed, ...others } = losses;
  if (seed === undefined) {
    return { losses, differences: {}, faults: ['there are no losses of seed to compare with'] };
  }
  const differences = Object.fromEntries(
    Object.entries(others).map(([name, own]) => [name, largestRelativeDifference(own, seed)]),
  );
  const faults = Object.entries(lossTolerances).flatMap(([name, tolerance]) => {
    const difference = differences[name];
    if (difference === undefined) return [`${name} has no losses to compare`];
    // Also true for NaN.
    if (difference <= tolerance) return [];
    return [
      `losses of ${name} are ${difference.toExponential(1)} from those of seed, not ${tolerance}`,
    ];
  });
  return { losses, differences, faults };
}
