/** The training loss: cross-entropy summed over the target tokens of a batch. */
import type { Batch } from '../../data/batching/batch.js';
import { checkFiniteNumber } from '../../nn/check.js';
import { checkModel } from '../../nn/model/checkModel.js';
import { Generator } from '../../nn/model/generator.js';
import { Linear } from '../../nn/layers/linear.js';
import { linearCrossEntropy } from '../../nn/loss/linearCrossEntropy.js';
import { crossEntropy } from '../../nn/loss/crossEntropy.js';
import { movedIds } from '../../nn/idRange.js';
import { isPackable } from '../../nn/packed/packable.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { checkInteger, checkOptions, orDefault } from '../../runtime/options.js';
import { callTensor } from '../../tensor/dispatch.js';
import { movedTo } from '../../tensor/movedTo.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkBatch } from './checkBatch.js';

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
 * @throws RangeError if `batch.ntokens` is not the number of targets other than `pad`
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
  // Once: it looks at the batch's tensors each time.
  const { packed: candidate } = batch;
  const packed = candidate !== undefined && isPackable(model) ? candidate : null;
  return tidy(() => {
    const { device } = model.generator.proj.weight;
    // What has to be looked at is looked at where the batch is, usually on the CPU.
    const targets = packed?.tgtY ?? batch.tgtY.flatten();
    const rows = callTensor('aten::nonzero', targets.ne(pad)).squeeze(1);
    if (rows.numel !== batch.ntokens) {
      throw new RangeError(
        `tokenLossSum: the batch says ntokens ${batch.ntokens}, but ${rows.numel} of its targets ` +
          `differ from pad ${pad}; was it made with another pad id?`,
      );
    }
    if (packed !== null) {
      const vectors = model.forwardPacked({
        src: movedIds(device, packed.src),
        tgt: movedIds(device, packed.tgt),
        srcSequences: packed.srcSequences.to(device),
        tgtSequences: packed.tgtSequences.to(device),
      });
      return generatorLoss(model.generator, vectors, movedIds(device, targets), scale);
    }
    const vectors = model
      .forward(
        movedIds(device, batch.src),
        movedIds(device, batch.tgt),
        movedTo(device, batch.srcMask),
        movedTo(device, batch.tgtMask),
      )
      .flatten(0, 1);
    const places = movedTo(device, rows);
    return generatorLoss(
      model.generator,
      callTensor('aten::index_select', vectors, 0, places),
      movedIds(device, targets.indexSelect(0, rows)),
      scale,
    );
  });
}

/** The loss of the decoder's vectors `[N, dModel]`, by the fused op for a generator as it came. */
function generatorLoss(
  generator: Generator,
  vectors: Tensor,
  targets: Tensor,
  scale: number,
): Tensor {
  const { proj } = generator;
  const isPlain =
    generator.forward === Generator.prototype.forward &&
    generator.logits === Generator.prototype.logits &&
    proj.forward === Linear.prototype.forward;
  if (isPlain) return linearCrossEntropy(vectors, proj, targets, { scale }).loss;
  // Its own forward and hooks. The softmax within the loss does not change log-probabilities.
  return crossEntropy(generator.forward(vectors), targets, { reduction: 'sum' }).mul(scale);
}
