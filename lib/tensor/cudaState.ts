/** Whether this process can use a GPU; if not, the reason and the fix. */
import { loadedRuntime } from '../runtime/native/load.js';
import { native } from './dispatch.js';

/** The state of CUDA in this process. It never changes: libtorch counts the GPUs once. */
export interface CudaState {
  /** Number of GPUs. */
  readonly devices: number;
  /** Why none can be used; null if one can. */
  readonly reason: string | null;
  /** The fix; null if there is none. */
  readonly fix: string | null;
}

let state: CudaState | undefined;

/** Determined at the first call. @throws TorchError if libtorch cannot be loaded */
export function cudaState(): CudaState {
  state ??= ask();
  return state;
}

function ask(): CudaState {
  const { devices, problem } = native().cudaStatus();
  if (devices > 0) return { devices, reason: null, fix: null };
  const decision = loadedRuntime()?.cuda;
  if (decision === undefined || decision.open) {
    return {
      devices,
      reason: problem ?? 'the CUDA library finds no GPU',
      fix: 'Check the driver and its GPUs with `nvidia-smi`, and CUDA_VISIBLE_DEVICES, which may hide GPUs.',
    };
  }
  return { devices, reason: decision.reason, fix: decision.fix };
}
