/** Settings that every part receives. */
import type { Device } from 'torchformer';
import type { Tools } from './tools.js';

export interface Place {
  readonly repository: string;
  /** Folder of the unpacked files, and of everything that is built. */
  readonly tree: string;
  readonly output: string;
  readonly python: string;
  readonly rehearse: boolean;
  /** The device to measure: `cuda`, or `cpu` in rehearsals. */
  readonly device: Device;
  readonly tools: Tools;
}
