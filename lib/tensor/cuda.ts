/** Information about GPUs and settings for them. */
import { ownPlatform } from '../runtime/native/platform.js';
import { checkChoice } from '../runtime/arguments.js';
import { cudaState } from './cudaState.js';
import { gpuIndex, needCuda, type Device } from './device.js';
import { native } from './dispatch.js';

/** Memory of a GPU, in bytes. */
export interface CudaMemory {
  /** Free memory, for all processes. */
  readonly free: number;
  /** Total memory of the GPU. */
  readonly total: number;
  /** Memory used by tensors of this process. */
  readonly allocated: number;
  /** Memory that libtorch holds for this process: `allocated`, and memory cached for reuse. */
  readonly reserved: number;
  /** Maximum of `allocated` since the start or `cuda.resetPeakMemory`. */
  readonly peakAllocated: number;
  /** Maximum of `reserved` since the start or `cuda.resetPeakMemory`. */
  readonly peakReserved: number;
}

/**
 * How products of float32 matrices are computed on a GPU: `'highest'` in float32, `'high'` in TF32,
 * which has 10 instead of 23 mantissa bits and is several times as fast.
 */
export type Float32Precision = 'highest' | 'high';

const precisions: readonly string[] = ['highest', 'high'];

/**
 * The GPUs of this process. If there are none, `isAvailable()` is false and nothing is printed. A
 * `device` is `'cuda'`, `'cuda:1'` or the index of a GPU, by default the first one; functions with
 * this parameter throw
 *
 * - TorchError ERR_CUDA_UNAVAILABLE, with the reason, if no GPU can be used;
 * - RangeError if there are fewer GPUs; TypeError if it is not a CUDA device.
 *
 * All functions load libtorch if it is not loaded yet, and may throw the errors of loading it.
 */
export const cuda = {
  /** Whether a GPU can be used. */
  isAvailable(): boolean {
    return cudaState().devices > 0;
  },

  /** Why no GPU can be used, such as `'this libtorch is a CPU build'`; null if one can. */
  unavailableReason(): string | null {
    return cudaState().reason;
  },

  /** Number of GPUs that are visible to this process (see `CUDA_VISIBLE_DEVICES`); 0 without CUDA. */
  deviceCount(): number {
    return cudaState().devices;
  },

  /** Name of the GPU: `'NVIDIA H200'`. */
  name(device?: Device | number): string {
    return deviceFacts('cuda.name', device).name;
  },

  /** Compute capability of the GPU: `[9, 0]` for an H200. */
  capability(device?: Device | number): readonly [major: number, minor: number] {
    const { major, minor } = deviceFacts('cuda.capability', device);
    return [major, minor];
  },

  /** Memory usage of the GPU; see {@link CudaMemory}. */
  memory(device?: Device | number): CudaMemory {
    return native().cudaMemory(gpuIndex('cuda.memory', device));
  },

  /** Resets the peaks of {@link CudaMemory} to the current values. */
  resetPeakMemory(device?: Device | number): void {
    native().cudaResetPeakMemory(gpuIndex('cuda.resetPeakMemory', device));
  },

  /**
   * Releases the memory that libtorch caches for later tensors, on all GPUs, so that other processes
   * can use it. This process does not benefit.
   */
  emptyCache(): void {
    needCuda('cuda.emptyCache');
    native().cudaEmptyCache();
  },

  /**
   * Waits until the GPU has finished all queued work. Needed to measure times, and before reading a
   * copy made with `nonBlocking`; `data()` and `item()` wait automatically.
   */
  synchronize(device?: Device | number): void {
    native().cudaSynchronize(gpuIndex('cuda.synchronize', device));
  },

  /** {@link cuda.synchronize} off the event loop, after all earlier asynchronous calls. */
  async synchronizeAsync(device?: Device | number): Promise<void> {
    await native().cudaSynchronizeAsync(gpuIndex('cuda.synchronizeAsync', device));
  },

  /** How products of float32 matrices are computed on GPUs; see {@link Float32Precision}. */
  float32Precision(): Float32Precision {
    return native().tf32() ? 'high' : 'highest';
  },

  /**
   * Sets the precision for the whole process. `'highest'` is the default, as in PyTorch. It has no
   * effect on the CPU, and may be set without a GPU.
   *
   * @throws TypeError for any other value
   */
  setFloat32Precision(precision: Float32Precision): void {
    checkChoice('cuda.setFloat32Precision', 'precision', precision, precisions);
    native().setTf32(precision === 'high');
  },
};

function deviceFacts(owner: string, device: Device | number | undefined) {
  const index = gpuIndex(owner, device);
  // gpuIndex has found a GPU, so this platform has a CUDA driver.
  return native().cudaDeviceFacts(index, ownPlatform.libraries.cudaDriver as string);
}
