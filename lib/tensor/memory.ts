import { native } from './dispatch.js';

/**
 * Live tensors of this environment. `tensors`: undisposed Tensor objects; `bytes`: their memory,
 * with each storage counted once; `nativeBytes`: all CPU memory that libtorch holds in this process,
 * including values saved for the backward pass.
 */
export function memory(): { tensors: number; bytes: number; nativeBytes: number } {
  return native().memory();
}
