import type { Device } from './device.js';
import { tidy } from './scope.js';
import type { Tensor } from './tensor.js';

/**
 * A tensor on another device; itself if it is there already. From the CPU to a GPU by way of pinned
 * memory: nobody waits for the copy, which is done before any work given to the GPU later.
 *
 * @internal
 */
export function movedTo(device: Device, tensor: Tensor): Tensor {
  if (tensor.device === device) return tensor;
  if (tensor.device !== 'cpu') return tensor.to({ device });
  return tidy(() => tensor.pinMemory().to({ device, nonBlocking: true }));
}
