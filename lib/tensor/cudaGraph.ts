/** CUDA graphs. */
import { gpuIndex, type Device } from './device.js';
import { call, native } from './dispatch.js';

/** Recorded work that can be replayed on the same memory. @internal */
export interface RecordedWork {
  /** Queues the work, on the tensors with which it was recorded. */
  replay(): void;
  /** Frees its memory. */
  dispose(): void;
}

/** Records the GPU work that `work` queues, without running it. @internal */
export type Recorder = (device: Device, work: () => void) => RecordedWork;

/**
 * Records a CUDA graph. `work` must be synchronous and must not wait for the GPU. Tensors that it
 * does not create itself must stay alive as long as the graph.
 *
 * @throws the errors of `work`, and ERR_NATIVE for operations that cannot be recorded
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

/** Whether the library with our CUDA kernels, which records graphs, is loaded. @internal */
export function canRecordGraphs(): boolean {
  return native().overloads('torchformer_graph::begin').length > 0;
}
