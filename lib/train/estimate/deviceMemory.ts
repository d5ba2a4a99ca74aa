/** How much memory a device has for a training run, and how much of it is in use. */
import { freemem, totalmem } from 'node:os';
import { cuda } from '../../tensor/cuda.js';
import type { Device } from '../../tensor/device.js';
import { memory } from '../../tensor/memory.js';

/** Bytes of tensors on the device: all that libtorch holds, values saved for backward included. */
export function usedBytes(device: Device): number {
  return device === 'cpu' ? memory().nativeBytes : cuda.memory(device).allocated;
}

/**
 * Bytes that this process can still get. On the CPU within the limit of its container, if there is one:
 * files that the system caches count as free, because it gives that memory up.
 */
export function freeBytes(device: Device): number {
  if (device !== 'cpu') {
    const { free, reserved, allocated } = cuda.memory(device);
    return free + reserved - allocated;
  }
  const held = process.memoryUsage.rss();
  // macOS counts only pages that hold nothing as free.
  const free = process.platform === 'darwin' ? totalmem() - held : freemem();
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? Math.min(free, Math.max(0, limit - held)) : free;
}

/** Waits for the work submitted to the device, to measure times. */
export async function settled(device: Device): Promise<void> {
  if (device !== 'cpu') await cuda.synchronizeAsync(device);
}
