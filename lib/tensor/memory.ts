import { native } from './dispatch.js';

/**
 * Live tensors of this environment. `tensors`: undisposed Tensor objects; `bytes`: their memory,
 * each storage once; `nativeBytes`: all memory that libtorch holds on the CPU in this process,
 * values saved for backward included.
 */
export function memory(): { tensors: number; bytes: number; nativeBytes: number } {
  return native().memory();
}
