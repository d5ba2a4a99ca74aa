/** The training loss: cross-entropy summed over the target tokens of a batch. */
import type { Batch } from '../data/batch.js';
import { checkModel } from '../nn/checkModel.js';
import { crossEntropy } from '../nn/loss.js';
import type { Transformer } from '../nn/transformer.js';
import { checkInteger } from '../runtime/options.js';
import { callTensor } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkBatch } from './checkBatch.js';

/**
 * The cross-entropy of a batch, summed over its target tokens; divide by their number for the
 * mean. Padding takes no part: its rows are left out before the generator, which is the widest
 * layer, so the sum is the one of a loss that ignores the pad id, at a fraction of the work.
 *
 * @param batch ids and masks `[B, S]`, `[B, T]`, `[B, 1, S]`, `[B, T, T]` on the model's device
 * @param pad the id in `batch.tgtY` that is no target
 * @returns a scalar that gradients flow through
 * @throws TypeError for what is no model or no batch
 * @throws RangeError if `batch.ntokens` is not the number of targets other than `pad`
 */
export function tokenLossSum(model: Transformer, batch: Batch, pad: number): Tensor {
  checkModel('tokenLossSum', model);
  checkBatch('tokenLossSum', 'batch', batch);
  checkInteger('tokenLossSum', 'pad', pad, 0);
  return tidy(() => {
    const targets = batch.tgtY.flatten();
    const rows = callTensor('aten::nonzero', targets.ne(pad)).squeeze(1);
    if (rows.numel !== batch.ntokens) {
      throw new RangeError(
        `tokenLossSum: the batch says ntokens ${batch.ntokens}, but ${rows.numel} of its targets ` +
          `differ from pad ${pad}; was it made with another pad id?`,
      );
    }
    const hidden = model.forward(batch.src, batch.tgt, batch.srcMask, batch.tgtMask);
    const logits = model.generator.logits(hidden.flatten(0, 1).indexSelect(0, rows));
    return crossEntropy(logits, targets.indexSelect(0, rows), { reduction: 'sum' });
  });
}
