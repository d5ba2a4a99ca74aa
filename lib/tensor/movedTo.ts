import type { Device } from './device.js';
import { tidy } from './scope.js';
import type { Tensor } from './tensor.js';

/**
 * Moves a tensor to a device; returns the tensor itself if it is already there. Copies from the CPU
 * to a GPU use pinned memory and do not wait: the copy is done before any later work on the GPU.
 *
 * @internal
 */
export function movedTo(device: Device, tensor: Tensor): Tensor {
  if (tensor.device === device) return tensor;
  if (tensor.device !== 'cpu') return tensor.to({ device });
  return tidy(() => tensor.pinMemory().to({ device, nonBlocking: true }));
}
