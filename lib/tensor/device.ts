/** Device names: their meaning, and the errors if there is no such device. */
import { cudaState } from './cudaState.js';
import { TorchError } from '../runtime/errors.js';
import { describe } from '../runtime/arguments.js';

/** The device of a tensor: `'cpu'` or a GPU; `'cuda'` is `'cuda:0'`. */
export type Device = 'cpu' | 'cuda' | `cuda:${number}`;

/** The device in options: a {@link Device}, or `'auto'` for the first usable GPU, or else the CPU. */
export type DeviceChoice = Device | 'auto';

/** The valid device names, for messages. */
export const deviceNames = "'auto', 'cpu', 'cuda' or 'cuda:<number>'";

/** Whether `value` is a valid device name, whether or not the device exists. */
export function isDeviceName(value: unknown): value is DeviceChoice {
  return typeof value === 'string' && /^(auto|cpu|cuda(:\d{1,3})?)$/.test(value);
}

/**
 * Checks the choice of a device; returns it as tensors report it, `'cpu'` or `'cuda:0'`.
 *
 * @throws TypeError if it is not a device name; TorchError ERR_CUDA_UNAVAILABLE, with the reason, if
 *   no GPU can be used; RangeError if there are fewer GPUs
 */
export function checkDevice(owner: string, name: string, value: unknown): Device {
  if (!isDeviceName(value)) {
    throw new TypeError(`${owner}: ${name} must be ${deviceNames}, got ${describe(value)}`);
  }
  if (value === 'cpu') return value;
  if (value === 'auto') return cudaState().devices > 0 ? 'cuda:0' : 'cpu';
  const index = value === 'cuda' ? 0 : Number(value.slice('cuda:'.length));
  const asked = `${name} is '${value}', but`;
  needCuda(owner, asked);
  checkGpuIndex(owner, asked, index, cudaState().devices);
  return `cuda:${index}`;
}

/**
 * The index of a GPU from its device name or index; default: the first.
 *
 * @throws TypeError, RangeError if it is not a GPU; TorchError ERR_CUDA_UNAVAILABLE
 */
export function gpuIndex(owner: string, value: unknown): number {
  if (value === undefined) value = 'cuda:0';
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) {
    value = `cuda:${value}`;
  }
  if (!isDeviceName(value) || value === 'cpu' || value === 'auto') {
    throw new TypeError(
      `${owner}: device must be 'cuda', 'cuda:<number>' or the number of a GPU, got ${describe(value)}`,
    );
  }
  const device = checkDevice(owner, 'device', value);
  return Number(device.slice('cuda:'.length));
}

/** @throws TorchError ERR_CUDA_UNAVAILABLE unless a GPU can be used */
export function needCuda(owner: string, asked = ''): void {
  const { devices, reason, fix } = cudaState();
  if (devices > 0) return;
  throw new TorchError(
    'ERR_CUDA_UNAVAILABLE',
    `${owner}: ${asked === '' ? '' : `${asked} `}no CUDA GPU can be used here: ${reason}. ${fix}`,
  );
}

/**
 * @param devices number of GPUs
 * @throws RangeError if there is no GPU with this index. @internal
 */
export function checkGpuIndex(owner: string, asked: string, index: number, devices: number): void {
  if (index < devices) return;
  const valid = devices === 1 ? "only 'cuda:0'" : `'cuda:0' to 'cuda:${devices - 1}'`;
  throw new RangeError(
    `${owner}: ${asked} this process sees ${devices} GPU${devices === 1 ? '' : 's'}: ${valid}`,
  );
}
