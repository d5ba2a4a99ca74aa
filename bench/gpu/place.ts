/** What every part is told. */
import type { Device } from 'torchformer';
import type { Tools } from './tools.js';

export interface Place {
  readonly repository: string;
  /** What was unpacked, and all that is made but the results. */
  readonly tree: string;
  readonly output: string;
  readonly python: string;
  readonly rehearse: boolean;
  /** What is measured: `cuda`, or `cpu` in rehearsals. */
  readonly device: Device;
  readonly tools: Tools;
}
