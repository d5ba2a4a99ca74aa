/** The results of the parts `train …`. */
import type { ModelSize } from '../sizes.js';
import type { Timing } from '../trainReport.js';
import type { LossComparison } from './equality.js';
import type { GpuSizeName } from './gpuSizes.js';

export interface GpuTiming extends Timing {
  /** Peak bytes of tensors on the GPU; null if unknown. */
  readonly peakDevice: number | null;
}

export interface TrainFindings {
  readonly size: GpuSizeName;
  readonly about: string;
  readonly model: ModelSize;
  readonly parameters: number;
  readonly equality: LossComparison;
  readonly timing: readonly GpuTiming[];
  /** Timed turns of each participant. */
  readonly rounds: number;
  /** Seconds until torch.compile had compiled everything; null if it failed. */
  readonly compileSeconds: number | null;
  /** By participant. */
  readonly failures: Readonly<Record<string, string>>;
}
