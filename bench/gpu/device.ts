/** What is asked of the GPU between steps; nothing where there is none. */
import { cuda } from 'torchformer';

/** Waits until the GPU has done all it was given. */
export function synchronizeDevice(): void {
  if (cuda.isAvailable()) cuda.synchronize();
}

/** Most bytes of tensors on the GPU so far; null without one. */
export function peakDeviceMemory(): number | null {
  return cuda.isAvailable() ? cuda.memory().peakAllocated : null;
}
