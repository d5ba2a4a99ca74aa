/** What the parts `train …` find. */
import type { ModelSize } from '../sizes.js';
import type { Timing } from '../trainReport.js';
import type { LossComparison } from './equality.js';
import type { GpuSizeName } from './gpuSizes.js';

export interface GpuTiming extends Timing {
  /** Most bytes of tensors on the GPU; null where it cannot be told. */
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
  /** Until torch.compile had made all it needs; null when it failed. */
  readonly compileSeconds: number | null;
  /** By participant. */
  readonly failures: Readonly<Record<string, string>>;
}
