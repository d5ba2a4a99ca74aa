/** Validation: the loss of data that is not trained on. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkModel } from '../nn/checkModel.js';
import type { Transformer } from '../nn/transformer.js';
import {
  checkFunction,
  checkInteger,
  checkRequiredOptions,
  checkSignal,
} from '../runtime/options.js';
import { noGrad } from '../tensor/autograd.js';
import { inScope } from './inScope.js';
import { BatchReader, type BatchSource } from './batchSource.js';
import { tokenLossSum } from './loss.js';
import { TokenMean } from './metrics.js';
import { batchOn } from './batchOn.js';

/** Options of {@link evaluate}. */
export interface EvaluateOptions {
  /** The id in the targets that is no target. */
  pad: number;
  /** Handed to the source; default 1. */
  epoch?: number;
  /** Stops after the current batch; the result then says `complete: false`. */
  signal?: AbortSignal;
  /** Called after each batch with its mean loss, and the means so far. */
  onBatch?: (batch: { index: number; loss: number; tokens: number }, soFar: Evaluation) => void;
}

/** What {@link evaluate} finds. */
export interface Evaluation {
  /** Mean over all target tokens; NaN without any. */
  readonly loss: number;
  /** Target tokens, padding left out. */
  readonly tokens: number;
  /** Batches that were looked at, those without a target token included. */
  readonly batches: number;
  /** How many batches there are in all, where the source says so. */
  readonly expectedBatches: number | null;
  /** False if the signal stopped it. */
  readonly complete: boolean;
}

/**
 * Computes the token-mean loss in eval mode and without gradients, then restores the mode that
 * the model was in. Between the batches the event loop gets a turn.
 *
 * @throws TypeError, RangeError for a fault in the arguments, or what is no batch
 */
export async function evaluate(
  model: Transformer,
  source: BatchSource,
  options: EvaluateOptions,
): Promise<Evaluation> {
  const owner = 'evaluate';
  checkModel(owner, model);
  checkRequiredOptions(owner, options, ['pad', 'epoch', 'signal', 'onBatch'], 'pad');
  const { pad, epoch = 1, signal, onBatch } = options;
  checkInteger(owner, 'pad', pad, 0);
  checkInteger(owner, 'epoch', epoch, 1);
  checkSignal(owner, 'signal', signal);
  if (onBatch !== undefined) checkFunction(owner, 'onBatch', onBatch);
  const wasTraining = model.training;
  const batches = new BatchReader(owner, 'source', source, epoch);
  const mean = new TokenMean();
  let count = 0;
  const state = (complete: boolean): Evaluation => ({
    loss: mean.mean,
    tokens: mean.tokens,
    batches: count,
    expectedBatches: batches.length,
    complete,
  });
  model.eval();
  try {
    while (signal?.aborted !== true) {
      const outcome = await inScope(async () => {
        const [batch] = await batches.take(1);
        if (batch === undefined) return null;
        if (batch.ntokens === 0) return { lossSum: 0, tokens: 0 };
        const lossSum = noGrad(() => tokenLossSum(model, batchOn(model, batch), pad)).item();
        return { lossSum: Number(lossSum), tokens: batch.ntokens };
      });
      if (outcome === null) return state(true);
      count++;
      const { lossSum, tokens } = outcome;
      if (tokens > 0) {
        mean.add(lossSum, tokens);
        onBatch?.({ index: count, loss: lossSum / tokens, tokens }, state(false));
      }
      await nextTurn();
    }
    return state(false);
  } finally {
    model.train(wasTraining);
    await batches.close();
  }
}
