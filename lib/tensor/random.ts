/**
 * The random state. Each environment (the main thread, each worker) has its own generator, which all
 * random ops and dropout use.
 */
import { describe } from '../runtime/arguments.js';
import { checkTensor } from './check.js';
import { native } from './dispatch.js';
import type { Tensor } from './tensor.js';

/**
 * Seeds the generator: the same seed gives the same numbers.
 *
 * @param seed a non-negative safe integer, or a bigint below 2^63
 */
export function manualSeed(seed: number | bigint): void {
  if (typeof seed !== 'number' && typeof seed !== 'bigint') {
    throw new TypeError(`manualSeed: seed must be an integer, got ${describe(seed)}`);
  }
  const fits = typeof seed === 'bigint' ? seed >= 0n && seed < 2n ** 63n : isNatural(seed);
  if (!fits) {
    throw new RangeError(
      `manualSeed: seed must be an integer from 0 to 2^53 - 1, or a bigint below 2^63, ` +
        `got ${describe(seed)}`,
    );
  }
  native().manualSeed(seed);
}

function isNatural(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** The complete state of the generator as a uint8 tensor, for {@link setRngState}. */
export function getRngState(): Tensor {
  return native().rngState();
}

/** Restores a state from {@link getRngState}. @throws TypeError, TorchError for other tensors */
export function setRngState(state: Tensor): void {
  checkTensor('setRngState', 'state', state);
  if (state.dtype !== 'uint8') {
    throw new TypeError(`setRngState: state must be a uint8 tensor, got ${state.dtype}`);
  }
  native().setRngState(state);
}
