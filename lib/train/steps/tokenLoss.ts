/** The training loss: cross-entropy summed over the target tokens of a batch. */
import type { Batch } from '../../data/batching/batch.js';
import type { PackedBatch } from '../../data/batching/packedBatch.js';
import { checkModel } from '../../nn/model/checkModel.js';
import { Generator } from '../../nn/model/generator.js';
import { Linear } from '../../nn/layers/linear.js';
import {
  linearCrossEntropy,
  type LinearCrossEntropyOptions,
} from '../../nn/loss/linearCrossEntropy.js';
import { crossEntropy } from '../../nn/loss/crossEntropy.js';
import { movedIds } from '../../nn/idRange.js';
import { isPackable, type Transformer } from '../../nn/model/transformer.js';
import {
  checkFiniteNumber,
  checkInteger,
  checkOptions,
  orDefault,
} from '../../runtime/arguments.js';
import type { Device } from '../../tensor/device.js';
import { callTensor } from '../../tensor/dispatch.js';
import { movedTo } from '../../tensor/movedTo.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkBatch, checkBatchIds } from './checkBatch.js';

/** Options of {@link tokenLossSum}. */
export interface TokenLossOptions {
  /**
   * what the sum is multiplied with, before gradients are made: 1 / tokens gives the mean for less
   * work than a division afterwards; default 1
   */
  scale?: number;
}

/**
 * The cross-entropy of a batch, summed over its target tokens; divide by their number for the
 * mean. Padding takes no part: a batch from `makeBatch` or `batches` runs without it through a
 * model of this package's modules (`Transformer.forwardPacked`); else its rows are left out before
 * the generator, which is the widest layer. Either way the sum is the one of a loss that ignores
 * the pad id, at a fraction of the work.
 *
 * @param batch ids and masks `[B, S]`, `[B, T]`, `[B, 1, S]`, `[B, T, T]`, on the model's device or on
 *   the CPU, from where they are moved without waiting
 * @param pad the id in `batch.tgtY` that is no target
 * @returns a scalar that gradients flow through
 * @throws TypeError for what is no model or no batch
 * @throws RangeError if `batch.ntokens` is not the number of targets other than `pad`, or for an id
 *   outside the vocabulary, naming its pair and place
 */
export function tokenLossSum(
  model: Transformer,
  batch: Batch,
  pad: number,
  options: TokenLossOptions = {},
): Tensor {
  checkModel('tokenLossSum', model);
  checkBatch('tokenLossSum', 'batch', batch);
  checkInteger('tokenLossSum', 'pad', pad, 0);
  checkOptions('tokenLossSum', options, ['scale']);
  const scale = checkFiniteNumber('tokenLossSum', 'scale', orDefault(options.scale, 1));
  return batchLoss(model, batch, { pad, scale, packs: isPackable(model) });
}

/** Settings of {@link batchLoss}. */
export interface BatchLossSettings {
  /** The id that is not a target. */
  readonly pad: number;
  /** Factor of the sum. */
  readonly scale: number;
  /** What {@link isPackable} says of the model. */
  readonly packs: boolean;
}

/**
 * {@link tokenLossSum} of a model and a batch that were checked, except for the range of the ids.
 * @throws RangeError naming the pair and the place of an id outside the vocabulary
 */
export function batchLoss(
  model: Transformer,
  batch: Batch,
  { pad, scale, packs }: BatchLossSettings,
): Tensor {
  try {
    return uncheckedLoss(model, batch, { pad, scale, packs });
  } catch (error) {
    // Modules know an id by its place in the rows that they were given, if at all.
    if (error instanceof RangeError) checkBatchIds('tokenLossSum', model, batch, pad);
    throw error;
  }
}

function uncheckedLoss(
  model: Transformer,
  batch: Batch,
  { pad, scale, packs }: BatchLossSettings,
): Tensor {
  // Once: the getter looks at the batch's tensors each time.
  const packed = packs ? batch.packed : undefined;
  return tidy(() => {
    const { device } = model.generator.proj.weight;
    // What has to be looked at is looked at where the batch is, usually on the CPU.
    const targets = packed?.tgtY ?? batch.tgtY.flatten();
    const rows = targetRows(targets, pad, batch.ntokens);
    if (packed !== undefined) return packedLoss(model, movedPacked(device, packed), { scale });
    const vectors = model
      .forward(
        movedIds(device, batch.src),
        movedIds(device, batch.tgt),
        movedTo(device, batch.srcMask),
        movedTo(device, batch.tgtMask),
      )
      .flatten(0, 1)
      .indexSelect(0, movedTo(device, rows));
    const counted = movedIds(device, targets.indexSelect(0, rows));
    return generatorLoss(model.generator, vectors, counted, { scale });
  });
}

/**
 * The loss of a model that packs, summed over the targets of a packed batch on its device: the one
 * composition for steps that are computed as they come and for those that are recorded.
 *
 * @param packed checked; ids that fit the vocabulary
 * @param options of {@link linearCrossEntropy}
 */
export function packedLoss(
  model: Transformer,
  packed: PackedBatch,
  options: LinearCrossEntropyOptions,
): Tensor {
  return generatorLoss(model.generator, model.vectorsOfPacked(packed), packed.tgtY, options);
}

function movedPacked(device: Device, packed: PackedBatch): PackedBatch {
  return {
    src: movedIds(device, packed.src),
    tgt: movedIds(device, packed.tgt),
    tgtY: movedIds(device, packed.tgtY),
    srcSequences: packed.srcSequences.to(device),
    tgtSequences: packed.tgtSequences.to(device),
  };
}

/** Where `targets` `[N]` are no padding. @throws RangeError unless there are `ntokens` of them */
function targetRows(targets: Tensor, pad: number, ntokens: number): Tensor {
  const rows = callTensor('aten::nonzero', targets.ne(pad)).squeeze(1);
  if (rows.numel !== ntokens) {
    throw new RangeError(
      `tokenLossSum: the batch says ntokens ${ntokens}, but ${rows.numel} of its targets ` +
        `differ from pad ${pad}; was it made with another pad id?`,
    );
  }
  return rows;
}

/** The loss of the decoder's vectors `[N, dModel]`, by the fused op for a generator as it came. */
function generatorLoss(
  generator: Generator,
  vectors: Tensor,
  targets: Tensor,
  options: LinearCrossEntropyOptions,
): Tensor {
  const { proj } = generator;
  const isPlain =
    generator.forward === Generator.prototype.forward &&
    generator.logits === Generator.prototype.logits &&
    proj.forward === Linear.prototype.forward;
  if (isPlain) return linearCrossEntropy(vectors, proj, targets, options).loss;
  // Its own forward and hooks. The softmax within the loss does not change log-probabilities.
  const { scale = 1, ignoreIndex = null } = options;
  const logits = generator.forward(vectors);
  return crossEntropy(logits, targets, { ignoreIndex, reduction: 'sum' }).mul(scale);
}
