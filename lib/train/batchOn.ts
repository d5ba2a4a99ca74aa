import type { Batch } from '../data/batch.js';
import type { Module } from '../nn/module.js';
import type { Tensor } from '../tensor/tensor.js';

/** The batch with its tensors on the model's device; the very batch if they are there already. */
export function batchOn(model: Module, batch: Batch): Batch {
  const device = model.parameters()[0]?.device ?? 'cpu';
  if (batch.src.device === device) return batch;
  const moved = (tensor: Tensor) => tensor.to({ device });
  return {
    ...batch,
    src: moved(batch.src),
    tgt: moved(batch.tgt),
    tgtY: moved(batch.tgtY),
    srcMask: moved(batch.srcMask),
    tgtMask: moved(batch.tgtMask),
  };
}
