/**
 * Positions outside of a tensor. On the CPU libtorch refuses them by itself. On a GPU its kernel finds
 * them when the call has long returned, and CUDA is lost for the whole process: there they are looked
 * at before, for which the program waits for the GPU.
 */
import { cudaState } from './cudaState.js';
import { callTensors } from './dispatch.js';
import type { Tensor } from './tensor.js';

/** Whether negative positions count from the end, as `index` has it, or are refused. */
export type NegativePositions = 'fromTheEnd' | 'refused';

/**
 * Does nothing for positions on the CPU.
 *
 * @param dim the dimension of `self` that they lead into; null: into all of its elements
 * @throws RangeError naming a position outside and the size
 */
export function checkGpuPositions(
  owner: string,
  self: Tensor,
  dim: number | null,
  index: Tensor,
  negative: NegativePositions = 'refused',
): void {
  if (cudaState().devices === 0 || index.device === 'cpu') return;
  // A wrong dimension is refused by libtorch.
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
      `${owner}: index must hold positions from ${lowest} to ${size - 1}, ` +
        `got ${low < lowest ? low : high}`,
    );
  } finally {
    least.dispose();
    greatest.dispose();
  }
}
