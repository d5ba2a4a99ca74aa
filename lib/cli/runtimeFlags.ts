/** The flags for the device and the number of threads. */
import type { Command } from 'commander';
import { checkDevice, type Device, type DeviceChoice } from '../tensor/device.js';
import { setNumThreads } from '../tensor/threads.js';
import { deviceName, integer } from './flagValues.js';

export interface RuntimeFlags {
  device: DeviceChoice;
  threads?: number;
}

export function addRuntimeFlags(command: Command): Command {
  return command
    .option(
      '--device <name>',
      'cpu, cuda, cuda:<number>, or auto: a GPU if there is one',
      deviceName,
      'cpu',
    )
    .option(
      '--threads <count>',
      "threads for one operation (default: libtorch's choice)",
      integer(1, 1024),
    );
}

/**
 * Sets the threads and finds the device.
 *
 * @param owner the command, for messages
 * @throws TorchError ERR_CUDA_UNAVAILABLE naming the flag
 */
export function applyRuntimeFlags(owner: string, { device, threads }: RuntimeFlags): Device {
  if (threads !== undefined) setNumThreads(threads);
  return checkDevice(owner, '--device', device);
}
