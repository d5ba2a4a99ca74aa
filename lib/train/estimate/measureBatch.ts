/** Runs batches forward and backward to measure them, and leaves no trace. */
import type { Batch } from '../../data/batching/batch.js';
import type { LabelSmoothingOptions } from '../../nn/loss/labelSmoothing.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { isInEvalMode, keepModes } from '../../nn/module/modes.js';
import { autocast, type AutocastDType } from '../../tensor/autocast.js';
import { noGrad } from '../../tensor/autograd.js';
import { call } from '../../tensor/dispatch.js';
import { getRngState, setRngState } from '../../tensor/random.js';
import type { Tensor } from '../../tensor/tensor.js';
import { inScope } from '../inScope.js';
import { useSparseEmbeddings } from '../steps/sparseEmbeddings.js';
import { batchLoss } from '../steps/tokenLoss.js';
import type { TrainingOptimizer } from '../trainerOptions.js';
import { settled, usedBytes } from './deviceMemory.js';

/** What a step computes. */
export interface MeasuredStep extends Readonly<Required<LabelSmoothingOptions>> {
  readonly model: Transformer;
  readonly pad: number;
  readonly packs: boolean;
  readonly dtype: AutocastDType;
}

/** What a forward and backward pass took. */
export interface BatchCost {
  /** Bytes held between the forward and the backward pass: the values saved for the latter. */
  readonly activations: number;
  /** Seconds of both passes. */
  readonly seconds: number;
}

/** The cost of one batch; its gradients are in the parameters afterwards. Call it in a scope. */
export async function measureBatch(step: MeasuredStep, batch: Batch): Promise<BatchCost> {
  const { model, dtype, ...settings } = step;
  const { device } = model.generator.proj.weight;
  for (const parameter of model.parameters()) parameter.grad = null;
  await settled(device);
  const before = usedBytes(device);
  const start = performance.now();
  const scale = 1 / batch.ntokens;
  const loss = autocast(dtype, () => batchLoss(model, batch, { ...settings, scale }));
  const activations = Math.max(0, usedBytes(device) - before);
  await loss.backwardAsync();
  await settled(device);
  return { activations, seconds: (performance.now() - start) / 1000 };
}

/**
 * Runs work that computes with the model as training does, and then restores its modes, gradients and
 * buffers, and the random state.
 */
export async function withoutTrace<T>(
  model: Transformer,
  optimizer: TrainingOptimizer,
  work: () => Promise<T>,
): Promise<T> {
  return inScope(async () => {
    const restoreModes = keepModes(model);
    const random = getRngState();
    const gradients = model.parameters().map((parameter) => [parameter, parameter.grad] as const);
    const restoreBuffers = keepBuffers(model);
    const restoreEmbeddings = useSparseEmbeddings(model, optimizer);
    if (isInEvalMode(model)) model.train();
    try {
      return await work();
    } finally {
      for (const [parameter, gradient] of gradients) parameter.grad = gradient;
      restoreEmbeddings();
      restoreBuffers();
      restoreModes();
      setRngState(random);
    }
  });
}

/** @returns a function that restores the buffers that have changed, such as running means */
function keepBuffers(model: Transformer): () => void {
  const version = (buffer: Tensor) => call('aten::_version', buffer);
  const kept = noGrad(() =>
    model.buffers().map((buffer) => ({ buffer, at: version(buffer), copy: buffer.clone() })),
  );
  return () => {
    for (const { buffer, at, copy } of kept) {
      if (version(buffer) !== at) noGrad(() => buffer.copy_(copy));
    }
  };
}
