import { callAsync } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';

/**
 * Reads the numbers of a tensor on another thread, after the asynchronous work submitted before: this
 * thread continues and can queue more work for a GPU in the meantime.
 *
 * @param tensor float64 `[N]`
 */
export function numbersLater(tensor: Tensor): Promise<number[]> {
  const numbers = readNumbers(tensor);
  // Whoever awaits the promise sees a failure. Until then, and if an error elsewhere means that nobody
  // will, it must not end the process as an unhandled rejection.
  numbers.catch(() => undefined);
  return numbers;
}

async function readNumbers(tensor: Tensor): Promise<number[]> {
  const copy = (await callAsync('aten::_to_copy', tensor, { device: 'cpu' })) as Tensor;
  try {
    return copy.toArray() as number[];
  } finally {
    copy.dispose();
  }
}
