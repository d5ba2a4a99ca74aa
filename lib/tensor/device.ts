/** Device names. */
import { describe } from '../runtime/options.js';
import { native } from './dispatch.js';

/** Where a tensor lives: `'cpu'`, `'cuda'` (the current GPU) or `'cuda:1'`. */
export type Device = 'cpu' | 'cuda' | `cuda:${number}`;

/**
 * Checks a device name; returns it. Whether the device is there is found out at its first use.
 *
 * @throws TypeError when it is no device name
 */
export function checkDevice(owner: string, name: string, value: unknown): Device {
  if (typeof value === 'string' && /^(cpu|cuda(:\d{1,3})?)$/.test(value)) return value as Device;
  throw new TypeError(
    `${owner}: ${name} must be 'cpu', 'cuda' or 'cuda:<number>', got ${describe(value)}`,
  );
}

/** Whether the loaded libtorch can use a CUDA GPU. */
export function cudaIsAvailable(): boolean {
  return native().cudaAvailable();
}
