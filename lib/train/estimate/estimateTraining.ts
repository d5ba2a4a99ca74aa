/** Memory and time of a training run, measured before its first step. */
import { Embedding } from '../../nn/layers/embedding.js';
import { checkModel } from '../../nn/model/checkModel.js';
import { checkedSmoothing, type SmoothingForm } from '../../nn/loss/labelSmoothing.js';
import { isPackable, type Transformer } from '../../nn/model/transformer.js';
import { Adam } from '../../optim/adam.js';
import { Optimizer } from '../../optim/optimizer.js';
import {
  checkBoolean,
  checkChoice,
  checkInteger,
  checkMethods,
  checkNonNegative,
  checkPositive,
  checkRequiredOptions,
} from '../../runtime/arguments.js';
import { TorchError } from '../../runtime/errors.js';
import { callTensor } from '../../tensor/dispatch.js';
import { byteSize } from '../../tensor/dtype.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { ExponentialMovingAverageOptions } from '../averaging/exponentialMovingAverage.js';
import { checkBatchSource, type BatchSource } from '../batchSource.js';
import { inScope } from '../inScope.js';
import { useSparseEmbeddings } from '../steps/sparseEmbeddings.js';
import type { TrainingOptimizer } from '../trainerOptions.js';
import { describeShortage } from './describeEstimate.js';
import { freeBytes } from './deviceMemory.js';
import { firstPairs, planEpoch, tokensIn, type BatchSize, type EpochPlan } from './epochPlan.js';
import type { MemoryEstimate, TimeEstimate, TrainingEstimate } from './estimate.js';
import { extrapolated } from './extrapolated.js';
import { measureBatch, withoutTrace, type BatchCost, type MeasuredStep } from './measureBatch.js';
import { updateSeconds } from './updateTime.js';

/** Options of {@link estimateTraining}: those of the run, as for `Trainer`. */
export interface EstimateTrainingOptions {
  /** Id of the padding, which the loss ignores. */
  pad: number;
  /** Default: Adam, as that of `Trainer`. */
  optimizer?: TrainingOptimizer;
  /** Dtype of the products in the steps. Default: the model's own. */
  dtype?: 'float32' | 'bfloat16' | 'float16';
  /** Batches for each optimizer step. Default 1. */
  accumulate?: number;
  /** Default 0. */
  labelSmoothing?: number;
  /** Default `'crossEntropy'`. */
  smoothingForm?: SmoothingForm;
  /** Given if the run averages its weights; that takes the memory of the trainable parameters. */
  averaging?: ExponentialMovingAverageOptions;
  /** Passes over the data. Default: no limit. */
  epochs?: number;
  /** Optimizer steps. Default: no limit. */
  steps?: number;
  /** Minutes. Default: no limit. */
  minutes?: number;
  /** Whether to run batches. Default true; false tells only what needs no computation. */
  measure?: boolean;
  /**
   * Bytes that the run may have, such as its share of a machine. Default: what the system or the
   * container has free, or the GPU, and what the weights hold already.
   */
  availableMemory?: number;
}

const owner = 'estimateTraining';
const optionNames = [
  'pad',
  'optimizer',
  'dtype',
  'accumulate',
  'labelSmoothing',
  'smoothingForm',
  'averaging',
  'epochs',
  'steps',
  'minutes',
  'measure',
  'availableMemory',
];

/**
 * Tells what a training run needs, before its first step: parameters, memory in bytes, time in seconds.
 *
 * ```ts
 * const estimate = await estimateTraining(model, trainBatches, { pad, optimizer, epochs: 10 });
 * for (const line of describeEstimate(estimate)) console.log(line);
 * ```
 *
 * Weights, gradients and the optimizer's state are computed. The activations are measured: the batch of
 * the first epoch with the most tokens runs forward and backward, and what libtorch holds between the two
 * are the values saved for the backward pass. Memory that an op uses only while it runs is not included.
 * Before that batch, a single pair and an eighth of the batch run, and the largest one only if they
 * foretell that it will fit. The time comes from batches of median size, one to five of them within about
 * half a second, and from the optimizer's update of copies of some parameters.
 *
 * Nothing changes: weights, gradients, modes, buffers, the random state and the live tensors are as
 * before, and the run that follows equals one without the estimate to the bit. Hooks of the model run.
 * Batches from `batches` are not all made; those of other sources are, once.
 *
 * @param batches the batches of the run, which can be iterated repeatedly
 * @throws TorchError ERR_OUT_OF_MEMORY if the run does not fit: how much is needed for what, how much
 *   there is, and what to change
 * @throws TypeError, RangeError if an argument is invalid, or there is no batch
 */
export async function estimateTraining(
  model: Transformer,
  batches: BatchSource,
  options: EstimateTrainingOptions,
): Promise<TrainingEstimate> {
  checkModel(owner, model);
  checkBatchSource(owner, 'batches', batches);
  const step = checkedStep(model, options);
  const optimizer = options.optimizer ?? new Adam(trainable(model));
  const known = knownMemory(model, optimizer, options);
  refuseShortage(known);
  const parameters = {
    all: elements(model.parameters()),
    trainable: elements(trainable(model)),
  };
  if (options.measure === false) return { parameters, memory: known, time: null };
  const plan = await planEpoch(owner, batches, step.packs);
  return withoutTrace(model, optimizer, async () => {
    const { memory, update } = await measureMemory(step, optimizer, plan, known);
    const token = await secondsOfToken(step, plan);
    return { parameters, memory, time: timeOf(plan, token, update, options) };
  });
}

function checkedStep(model: Transformer, options: EstimateTrainingOptions): MeasuredStep {
  checkRequiredOptions(owner, options, optionNames, 'pad');
  const { pad, optimizer, dtype = 'float32', accumulate, measure, availableMemory } = options;
  const { epochs, steps, minutes } = options;
  checkInteger(owner, 'pad', pad, 0);
  if (optimizer !== undefined) {
    const expected = 'an optimizer such as new Adam(model.parameters())';
    checkMethods(owner, 'optimizer', optimizer, ['zeroGrad', 'stepAsync'], expected);
  }
  checkChoice(owner, 'dtype', dtype, ['float32', 'bfloat16', 'float16']);
  if (accumulate !== undefined) checkInteger(owner, 'accumulate', accumulate, 1);
  if (epochs !== undefined) checkInteger(owner, 'epochs', epochs, 1);
  if (steps !== undefined) checkInteger(owner, 'steps', steps, 1);
  if (minutes !== undefined) checkPositive(owner, 'minutes', minutes);
  if (measure !== undefined) checkBoolean(owner, 'measure', measure);
  if (availableMemory !== undefined) checkNonNegative(owner, 'availableMemory', availableMemory);
  return { model, pad, dtype, packs: isPackable(model), ...checkedSmoothing(owner, options) };
}

/** What needs no computation. */
function knownMemory(
  model: Transformer,
  optimizer: TrainingOptimizer,
  { averaging, availableMemory }: EstimateTrainingOptions,
): MemoryEstimate {
  const weights = bytesOf([...model.parameters(), ...model.buffers()]);
  const { device } = model.generator.proj.weight;
  return totalled({
    weights,
    gradients: bytesOf(withDenseGradient(model, optimizer)),
    optimizer: optimizer instanceof Optimizer ? optimizer.stateBytes() : null,
    optimizerName: optimizer.constructor.name,
    averages: averaging === undefined ? 0 : averageBytes(trainable(model)),
    activations: null,
    largestBatch: null,
    available: availableMemory ?? freeBytes(device) + weights,
  });
}

function totalled(parts: Omit<MemoryEstimate, 'total'>): MemoryEstimate {
  const { weights, gradients, optimizer, averages, activations } = parts;
  const total = weights + gradients + (optimizer ?? 0) + averages + (activations ?? 0);
  return { ...parts, total };
}

/** The trainable parameters except tables whose gradients are the rows in use. */
function withDenseGradient(model: Transformer, optimizer: TrainingOptimizer): Tensor[] {
  const restore = useSparseEmbeddings(model, optimizer);
  try {
    const tables = model.modules().filter((module) => module instanceof Embedding);
    const sparse = new Set<Tensor>(
      tables.filter((table) => table.sparseGradient).map(({ weight }) => weight),
    );
    return trainable(model).filter((parameter) => !sparse.has(parameter));
  } finally {
    restore();
  }
}

/** @throws TorchError ERR_OUT_OF_MEMORY */
function refuseShortage(memory: MemoryEstimate, cause?: unknown): void {
  if (memory.total <= memory.available && cause === undefined) return;
  throw new TorchError('ERR_OUT_OF_MEMORY', `${owner}: ${describeShortage(memory)}`, { cause });
}

/** Measures the largest batch, unless a part of it foretells that it will not fit. */
async function measureMemory(
  step: MeasuredStep,
  optimizer: TrainingOptimizer,
  plan: EpochPlan,
  known: MemoryEstimate,
): Promise<{ memory: MemoryEstimate; update: number }> {
  const largest = plan.sizes.reduce((most, size) => (size.tokens > most.tokens ? size : most));
  const { pairs, tokens } = largest;
  return inScope(async () => {
    const batch = await plan.batch(largest.index);
    const part = async (count: number) => {
      const first = firstPairs(batch, count, step.pad);
      const { activations } = await measureBatch(step, first);
      return { tokens: tokensIn(first, step.packs), bytes: activations };
    };
    const single = await part(1);
    const eighth = await part(Math.ceil(pairs / 8));
    const foretold = totalled({
      ...known,
      activations: extrapolated(single, eighth, tokens),
      largestBatch: { pairs, tokens, wasRun: false },
    });
    refuseShortage(foretold);
    const { activations } = await measureBatch(step, batch).catch((error: unknown) => {
      if (error instanceof TorchError && error.code === 'ERR_OUT_OF_MEMORY') {
        refuseShortage(foretold, error);
      }
      throw error;
    });
    const memory = totalled({
      ...known,
      gradients: gradientBytes(step.model),
      activations,
      largestBatch: { pairs, tokens, wasRun: true },
    });
    refuseShortage(memory);
    return { memory, update: await updateSeconds(optimizer, trainable(step.model)) };
  });
}

/** Bytes of the gradients that are there now. */
function gradientBytes(model: Transformer): number {
  return trainable(model).reduce((sum, { grad }) => {
    if (grad === null) return sum;
    return sum + bytesOf(grad.isSparse ? storageOf(grad) : [grad]);
  }, 0);
}

/** The rows and their numbers. */
function storageOf(sparse: Tensor): Tensor[] {
  return [callTensor('aten::_values', sparse), callTensor('aten::_indices', sparse)];
}

/** Seconds for each token of batches of median size. */
async function secondsOfToken(step: MeasuredStep, plan: EpochPlan): Promise<number> {
  const costs: BatchCost[] = [];
  let tokens = 0;
  const until = performance.now() + timeToMeasure;
  for (const { index, tokens: size } of medianOf(plan.sizes)) {
    if (costs.length > 0 && performance.now() > until) break;
    costs.push(await inScope(async () => measureBatch(step, await plan.batch(index))));
    tokens += size;
  }
  return costs.reduce((sum, { seconds }) => sum + seconds, 0) / tokens;
}

/** In milliseconds. */
const timeToMeasure = 500;

/** Up to five batches from the middle of the sizes. */
function medianOf(sizes: readonly BatchSize[]): BatchSize[] {
  const sorted = sizes.toSorted((a, b) => a.tokens - b.tokens);
  const start = Math.max(0, Math.floor(sorted.length / 2) - 2);
  return sorted.slice(start, start + 5);
}

function timeOf(
  { sizes }: EpochPlan,
  token: number,
  update: number,
  {
    accumulate = 1,
    epochs = Infinity,
    steps = Infinity,
    minutes = Infinity,
  }: EstimateTrainingOptions,
): TimeEstimate {
  const tokens = sizes.reduce((sum, size) => sum + size.tokens, 0);
  const stepsPerEpoch = Math.ceil(sizes.length / accumulate);
  const epoch = tokens * token + stepsPerEpoch * update;
  const total = Math.min(epochs * epoch, (steps * epoch) / stepsPerEpoch, 60 * minutes);
  return { token, update, epoch, stepsPerEpoch, total: Number.isFinite(total) ? total : null };
}

function trainable(model: Transformer): Tensor[] {
  return model.parameters().filter(({ requiresGrad }) => requiresGrad);
}

function elements(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { numel }) => sum + numel, 0);
}

/** Averages of half-precision weights are float32. */
function averageBytes(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { numel, dtype }) => sum + numel * (dtype === 'float64' ? 8 : 4), 0);
}

function bytesOf(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { numel, dtype }) => sum + numel * byteSize(dtype), 0);
}
