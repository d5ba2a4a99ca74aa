/** GPU calls between steps; they do nothing without a GPU. */
import { cuda } from 'torchformer';

/** Waits until the GPU has finished all queued work. */
export function synchronizeDevice(): void {
  if (cuda.isAvailable()) cuda.synchronize();
}

/** Peak bytes of tensors on the GPU so far; null without a GPU. */
export function peakDeviceMemory(): number | null {
  return cuda.isAvailable() ? cuda.memory().peakAllocated : null;
}
