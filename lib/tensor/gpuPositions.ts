/**
 * Checks for positions outside a tensor. On the CPU, libtorch checks them. On a GPU, its kernel
 * detects them only after the call has returned, and then CUDA is unusable for the rest of the
 * process; so they are checked before the call, which waits for the GPU.
 */
import { cudaState } from './cudaState.js';
import { callTensors } from './dispatch.js';
import type { Tensor } from './tensor.js';

/** Whether negative positions count from the end, as in `index`, or are rejected. */
export type NegativePositions = 'fromTheEnd' | 'rejected';

/**
 * Does nothing for positions on the CPU.
 *
 * @param dim the dimension of `self` that they index; null: the flattened tensor
 * @throws RangeError with the invalid position and the valid range
 */
export function checkGpuPositions(
  owner: string,
  self: Tensor,
  dim: number | null,
  index: Tensor,
  negative: NegativePositions = 'rejected',
): void {
  if (cudaState().devices === 0 || index.device === 'cpu') return;
  // libtorch rejects a wrong dimension.
  const size = dim === null ? self.numel : self.ndim === 0 ? 1 : self.shape.at(dim);
  if (size !== undefined) checkPositionRange(owner, index, size, negative);
}

/** The check itself, on any device. @throws RangeError @internal */
export function checkPositionRange(
  owner: string,
  index: Tensor,
  size: number,
  negative: NegativePositions,
): void {
  if (index.numel === 0 || index.dtype === 'bool') return;
  const [least, greatest] = callTensors('aten::aminmax', index) as [Tensor, Tensor];
  try {
    const lowest = negative === 'fromTheEnd' ? -size : 0;
    const [low, high] = [least.item(), greatest.item()];
    if (low >= lowest && high < size) return;
    throw new RangeError(
      `${owner}: index must contain positions from ${lowest} to ${size - 1}, ` +
        `got ${low < lowest ? low : high}`,
    );
  } finally {
    least.dispose();
    greatest.dispose();
  }
}
