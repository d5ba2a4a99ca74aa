/** Device names. */
import { TorchError } from '../runtime/errors.js';
import { describe } from '../runtime/options.js';
import { native } from './dispatch.js';

/** Where a tensor lives: `'cpu'`, `'cuda'` (the current GPU) or `'cuda:1'`. */
export type Device = 'cpu' | 'cuda' | `cuda:${number}`;

/**
 * Checks a device name; returns it. Whether there are as many GPUs is found out at the first use.
 *
 * @throws TypeError when it is no device name; TorchError ERR_CUDA_UNAVAILABLE
 */
export function checkDevice(owner: string, name: string, value: unknown): Device {
  if (typeof value !== 'string' || !/^(cpu|cuda(:\d{1,3})?)$/.test(value)) {
    throw new TypeError(
      `${owner}: ${name} must be 'cpu', 'cuda' or 'cuda:<number>', got ${describe(value)}`,
    );
  }
  if (value !== 'cpu' && !cudaIsAvailable()) {
    throw new TorchError(
      'ERR_CUDA_UNAVAILABLE',
      `${owner}: ${name} is '${value}', but no CUDA GPU can be used here; ` +
        '`npx torchformer doctor` tells why',
    );
  }
  return value as Device;
}

/** Whether the loaded libtorch can use a CUDA GPU. */
export function cudaIsAvailable(): boolean {
  return native().cudaAvailable();
}
