/** What can be asked and set of GPUs. */
import { ownPlatform } from '../runtime/native/platform.js';
import { checkChoice } from '../runtime/arguments.js';
import { cudaState } from './cudaState.js';
import { gpuIndex, needCuda, type Device } from './device.js';
import { native } from './dispatch.js';

/** Memory of a GPU, in bytes. */
export interface CudaMemory {
  /** What the driver has left, for all processes. */
  readonly free: number;
  /** What the GPU has. */
  readonly total: number;
  /** What tensors of this process hold. */
  readonly allocated: number;
  /** What libtorch holds for this process, `allocated` included; the rest is kept for next time. */
  readonly reserved: number;
  /** The most that `allocated` has been since the start or `cuda.resetPeakMemory`. */
  readonly peakAllocated: number;
  /** The most that `reserved` has been since then. */
  readonly peakReserved: number;
}

/**
 * How products of float32 matrices are computed on a GPU: `'highest'` in float32, `'high'` in TF32,
 * which has 10 bits of mantissa in place of 23 and is several times as fast.
 */
export type Float32Precision = 'highest' | 'high';

const precisions: readonly string[] = ['highest', 'high'];

/**
 * The GPUs of this process. Where there are none, nothing is printed and nothing fails:
 * `isAvailable()` is false. A `device` is `'cuda'`, `'cuda:1'` or the number of a GPU, by default
 * the first one; the functions that take it throw
 *
 * - TorchError ERR_CUDA_UNAVAILABLE, with the reason, when no GPU can be used;
 * - RangeError when there are fewer GPUs, TypeError when it is no device of CUDA.
 *
 * All of them load libtorch, if nothing has yet, and throw what that throws.
 */
export const cuda = {
  /** Whether a GPU can be used. */
  isAvailable(): boolean {
    return cudaState().devices > 0;
  },

  /** Why no GPU can be used, such as `'this libtorch is a CPU build'`; null when one can. */
  unavailableReason(): string | null {
    return cudaState().reason;
  },

  /** How many GPUs this process sees; `CUDA_VISIBLE_DEVICES` hides some from it. 0 without CUDA. */
  deviceCount(): number {
    return cudaState().devices;
  },

  /** What NVIDIA calls the GPU: `'NVIDIA H200'`. */
  name(device?: Device | number): string {
    return deviceFacts('cuda.name', device).name;
  },

  /** Its compute capability, `[9, 0]` for an H200: what kinds of instructions it has. */
  capability(device?: Device | number): readonly [major: number, minor: number] {
    const { major, minor } = deviceFacts('cuda.capability', device);
    return [major, minor];
  },

  /** How much memory there is and who has it; see {@link CudaMemory}. */
  memory(device?: Device | number): CudaMemory {
    return native().cudaMemory(gpuIndex('cuda.memory', device));
  },

  /** Makes the peaks of {@link CudaMemory} start anew from what is held now. */
  resetPeakMemory(device?: Device | number): void {
    native().cudaResetPeakMemory(gpuIndex('cuda.resetPeakMemory', device));
  },

  /**
   * Gives the memory back that libtorch keeps for later tensors, on all GPUs, so that other
   * processes can have it. This process gains nothing by it.
   */
  emptyCache(): void {
    needCuda('cuda.emptyCache');
    native().cudaEmptyCache();
  },

  /**
   * Waits until the GPU has done all that it was given. Needed to measure times, and before reading
   * a copy that was made with `nonBlocking`; `data()` and `item()` wait by themselves.
   */
  synchronize(device?: Device | number): void {
    native().cudaSynchronize(gpuIndex('cuda.synchronize', device));
  },

  /** {@link cuda.synchronize} off the event loop, after the asynchronous calls made before. */
  async synchronizeAsync(device?: Device | number): Promise<void> {
    await native().cudaSynchronizeAsync(gpuIndex('cuda.synchronizeAsync', device));
  },

  /** How products of float32 matrices are computed on GPUs; see {@link Float32Precision}. */
  float32Precision(): Float32Precision {
    return native().tf32() ? 'high' : 'highest';
  },

  /**
   * Sets it, for the whole process. `'highest'` is the default, as in PyTorch. It changes nothing on
   * the CPU, and may be set where there is no GPU.
   *
   * @throws TypeError for another word
   */
  setFloat32Precision(precision: Float32Precision): void {
    checkChoice('cuda.setFloat32Precision', 'precision', precision, precisions);
    native().setTf32(precision === 'high');
  },
};

function deviceFacts(owner: string, device: Device | number | undefined) {
  const index = gpuIndex(owner, device);
  // A system that CUDA does not exist on has no GPU either.
  return native().cudaDeviceFacts(index, ownPlatform.libraries.cudaDriver as string);
}
