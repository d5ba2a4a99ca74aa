/** Whether this process can use a GPU; if not, why, and what to do. */
import { loadedRuntime } from '../runtime/native/load.js';
import { native } from './dispatch.js';

/** What is known of CUDA in this process. It never changes: libtorch counts the GPUs once. */
export interface CudaState {
  /** How many GPUs there are. */
  readonly devices: number;
  /** Why none can be used; null when one can. */
  readonly reason: string | null;
  /** What to do about it; null when there is nothing. */
  readonly wayOut: string | null;
}

let state: CudaState | undefined;

/** Asks at the first call. @throws TorchError when libtorch cannot be loaded */
export function cudaState(): CudaState {
  state ??= ask();
  return state;
}

function ask(): CudaState {
  const { devices, problem } = native().cudaStatus();
  if (devices > 0) return { devices, reason: null, wayOut: null };
  const decision = loadedRuntime()?.cuda;
  if (decision === undefined || decision.open) {
    return {
      devices,
      reason: problem ?? 'the CUDA library finds no GPU',
      wayOut:
        'Look at the driver and its GPUs with `nvidia-smi`, and at CUDA_VISIBLE_DEVICES, which hides some.',
    };
  }
  return { devices, reason: decision.reason, wayOut: decision.fix };
}
