import { callAsync } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';

/**
 * The numbers of a tensor, read off the event loop behind the asynchronous work given before: this
 * thread goes on, and can queue more for a GPU meanwhile.
 *
 * @param tensor float64 `[N]`
 */
export function numbersLater(tensor: Tensor): Promise<number[]> {
  const numbers = readNumbers(tensor);
  // Whoever waits for them is told. Until then, and when a fault elsewhere means that nobody will, a
  // failure must not end the process as "unhandled".
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
