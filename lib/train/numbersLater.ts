import { callAsync } from '../tensor/dispatch.js';
import type { Tensor } from '../tensor/tensor.js';

/**
 * The numbers of a tensor, read off the event loop behind the asynchronous work given before: this
 * thread goes on, and can queue more for a GPU meanwhile.
 *
 * @param tensor float64 `[N]`
 */
export async function numbersLater(tensor: Tensor): Promise<number[]> {
  const copy = (await callAsync('aten::_to_copy', tensor, { device: 'cpu' })) as Tensor;
  try {
    return copy.toArray() as number[];
  } finally {
    copy.dispose();
  }
}
