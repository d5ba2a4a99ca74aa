/** The training loss: cross-entropy summed over the target tokens of a batch. */
import type { Batch } from '../../data/batching/batch.js';
import type { PackedBatch } from '../../data/batching/packedBatch.js';
import { checkModel } from '../../nn/model/checkModel.js';
import { Generator } from '../../nn/model/generator.js';
import { Linear } from '../../nn/layers/linear.js';
import { linearCrossEntropy } from '../../nn/loss/linearCrossEntropy.js';
import { crossEntropy } from '../../nn/loss/crossEntropy.js';
import {
  checkedSmoothing,
  smoothingNames,
  type LabelSmoothingOptions,
} from '../../nn/loss/labelSmoothing.js';
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
export interface TokenLossOptions extends LabelSmoothingOptions {
  /**
   * Factor applied to the sum before gradients are computed: 1 / tokens gives the mean for less work
   * than a division afterwards. Default 1.
   */
  scale?: number;
}

/**
 * Computes the cross-entropy of a batch, summed over its target tokens; divide by their number for the
 * mean. Padding is ignored: a batch from `makeBatch` or `batches` runs without it through a model of
 * this package's modules (`Transformer.forwardPacked`); otherwise its rows are removed before the
 * generator, which is the widest layer. Either way the result equals that of a loss that ignores the
 * pad id, at a fraction of the work. With `labelSmoothing`, the loss is that of the smoothed targets.
 *
 * @param batch ids and masks `[B, S]`, `[B, T]`, `[B, 1, S]`, `[B, T, T]`, on the model's device or on
 *   the CPU, from where they are moved without waiting
 * @param pad the padding id in `batch.tgtY`, which is not a target
 * @returns a differentiable scalar
 * @throws TypeError if `model` is not a Transformer or `batch` is not a batch
 * @throws RangeError if `batch.ntokens` is not the number of targets other than `pad`, or if an id is
 *   outside the vocabulary, naming its pair and position
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
  checkOptions('tokenLossSum', options, ['scale', ...smoothingNames]);
  const scale = checkFiniteNumber('tokenLossSum', 'scale', orDefault(options.scale, 1));
  const smoothing = checkedSmoothing('tokenLossSum', options);
  return batchLoss(model, batch, { pad, scale, packs: isPackable(model), ...smoothing });
}

/** Settings of {@link batchLoss}. */
export interface BatchLossSettings extends LabelSmoothingOptions {
  /** The id that is not a target. */
  readonly pad: number;
  /** Factor of the sum. */
  readonly scale: number;
  /** The result of {@link isPackable} for the model. */
  readonly packs: boolean;
}

/**
 * {@link tokenLossSum} for a model and a batch already checked, except for the range of the ids.
 * @throws RangeError naming the pair and the position of an id outside the vocabulary
 */
export function batchLoss(model: Transformer, batch: Batch, settings: BatchLossSettings): Tensor {
  return checkedLoss(model, batch, settings, false)[0];
}

/**
 * {@link batchLoss}, and the number of targets whose score is the highest (the first, if tied): an int64
 * scalar.
 */
export function batchLossAndHits(
  model: Transformer,
  batch: Batch,
  settings: BatchLossSettings,
): [loss: Tensor, hits: Tensor] {
  return checkedLoss(model, batch, settings, true) as [Tensor, Tensor];
}

/** The loss and, if they are counted, the hits. */
type LossAndHits = [loss: Tensor, hits?: Tensor];

function checkedLoss(
  model: Transformer,
  batch: Batch,
  settings: BatchLossSettings,
  countsHits: boolean,
): LossAndHits {
  try {
    return uncheckedLoss(model, batch, settings, countsHits);
  } catch (error) {
    // A module knows at most the position of an id in its own input.
    if (error instanceof RangeError) checkBatchIds('tokenLossSum', model, batch, settings.pad);
    throw error;
  }
}

function uncheckedLoss(
  model: Transformer,
  batch: Batch,
  { pad, packs, ...options }: BatchLossSettings,
  countsHits: boolean,
): LossAndHits {
  // Read once: the getter checks the batch's tensors each time.
  const packed = packs ? batch.packed : undefined;
  return tidy(() => {
    const { device } = model.generator.proj.weight;
    // Values are checked on the batch's device, usually the CPU.
    const targets = packed?.tgtY ?? batch.tgtY.flatten();
    const rows = targetRows(targets, pad, batch.ntokens);
    if (packed !== undefined) {
      const moved = movedPacked(device, packed);
      const vectors = model.vectorsOfPacked(moved);
      return generatorLoss(model.generator, vectors, moved.tgtY, pad, options, countsHits);
    }
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
    return generatorLoss(model.generator, vectors, counted, pad, options, countsHits);
  });
}

/** Factor and smoothing of the sum. */
type GeneratorLossOptions = LabelSmoothingOptions & { readonly scale?: number };

/**
 * The loss of a packable model, summed over the targets of a packed batch on its device; shared by
 * recorded and unrecorded steps.
 *
 * @param packed a checked batch whose ids are in the vocabulary
 * @param pad ignored as a target, and by `smoothingForm: 'klDivergence'` as a class
 */
export function packedLoss(
  model: Transformer,
  packed: PackedBatch,
  pad: number,
  options: GeneratorLossOptions = {},
): Tensor {
  const vectors = model.vectorsOfPacked(packed);
  return generatorLoss(model.generator, vectors, packed.tgtY, pad, options, false)[0];
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

/** Indices of `targets` `[N]` other than `pad`. @throws RangeError unless there are `ntokens` of them */
function targetRows(targets: Tensor, pad: number, ntokens: number): Tensor {
  const rows = callTensor('aten::nonzero', targets.ne(pad)).squeeze(1);
  if (rows.numel !== ntokens) {
    throw new RangeError(
      `tokenLossSum: the batch has ntokens ${ntokens}, but ${rows.numel} of its targets ` +
        `differ from pad ${pad}; was it made with another pad id?`,
    );
  }
  return rows;
}

/** The loss of the decoder's vectors `[N, dModel]`, with the fused op for an unmodified generator. */
function generatorLoss(
  generator: Generator,
  vectors: Tensor,
  targets: Tensor,
  pad: number,
  { scale = 1, ...smoothing }: GeneratorLossOptions,
  countsHits: boolean,
): LossAndHits {
  const { proj } = generator;
  const isPlain =
    generator.forward === Generator.prototype.forward &&
    generator.logits === Generator.prototype.logits &&
    proj.forward === Linear.prototype.forward;
  const options = { ignoreIndex: pad, ...smoothing };
  if (isPlain) {
    const { loss, correct } = linearCrossEntropy(vectors, proj, targets, { ...options, scale });
    return countsHits ? [loss, correct] : [loss];
  }
  // Runs its own forward and hooks. The softmax in the loss does not change log-probabilities.
  const logits = generator.forward(vectors);
  const loss = crossEntropy(logits, targets, { ...options, reduction: 'sum' }).mul(scale);
  return countsHits ? [loss, logits.argmax(-1).eq(targets).sum()] : [loss];
}
