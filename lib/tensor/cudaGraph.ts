/** Recorded work of a GPU: CUDA graphs. */
import { gpuIndex, type Device } from './device.js';
import { call, native } from './dispatch.js';

/** Work that was recorded and can be done again, on the same memory. @internal */
export interface RecordedWork {
  /** Queues all of it, on the tensors that it was recorded with. */
  replay(): void;
  /** Frees its memory. */
  dispose(): void;
}

/** Records what `work` gives to a device; nothing of it is done yet. @internal */
export type Recorder = (device: Device, work: () => void) => RecordedWork;

/**
 * Records a CUDA graph. `work` must be synchronous, wait for nothing, and make all its tensors
 * itself or be given ones that stay.
 *
 * @throws whatever `work` throws, and ERR_NATIVE for what cannot be recorded
 * @internal
 */
export const recordGraph: Recorder = (device, work) => {
  const graph = call('torchformer_graph::begin', gpuIndex('recordGraph', device)) as number;
  try {
    work();
  } catch (error) {
    call('torchformer_graph::end', graph, false);
    throw error;
  }
  call('torchformer_graph::end', graph, true);
  return {
    replay: () => void call('torchformer_graph::replay', graph),
    dispose: () => void call('torchformer_graph::release', graph),
  };
};

/** Whether the library with our CUDA kernels, which records graphs, is open. @internal */
export function canRecordGraphs(): boolean {
  return native().overloads('torchformer_graph::begin').length > 0;
}
