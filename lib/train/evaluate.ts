/** Validation: the loss on data that is not used for training. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkModel } from '../nn/model/checkModel.js';
import { isPackable, type Transformer } from '../nn/model/transformer.js';
import { keepModes } from '../nn/module/modes.js';
import {
  checkBoolean,
  checkFunction,
  checkInteger,
  checkRequiredOptions,
  checkSignal,
} from '../runtime/arguments.js';
import { noGrad } from '../tensor/autograd.js';
import { cat } from '../tensor/join.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { inScope } from './inScope.js';
import { BatchReader, type BatchSource } from './batchSource.js';
import { batchLoss, batchLossAndHits } from './steps/tokenLoss.js';
import { withoutLongRows } from './longRows.js';
import { TokenMean } from './metrics.js';
import { numbersLater } from './steps/numbersLater.js';

/** Options of {@link evaluate}. */
export interface EvaluateOptions {
  /** The padding id, which is not counted as a target. */
  pad: number;
  /** Passed to the source; default 1. */
  epoch?: number;
  /** Also computes the accuracy. Default false. */
  accuracy?: boolean;
  /** Stops after the current batch; the result then has `complete: false`. */
  signal?: AbortSignal;
  /**
   * Called with the numbers of the rows of a batch that are longer than the model's position tables;
   * these rows are skipped. Default: such a row is an error.
   */
  onLongRows?: (rows: readonly number[]) => void;
  /** Called after each batch with its mean loss and the result so far. */
  onBatch?: (batch: { index: number; loss: number; tokens: number }, soFar: Evaluation) => void;
}

/** The result of {@link evaluate}. */
export interface Evaluation {
  /** Mean over all target tokens; NaN if there are none. */
  readonly loss: number;
  /** `exp(loss)`: as uncertain as a choice among so many tokens of equal probability. */
  readonly perplexity: number;
  /**
   * The share of the target tokens, given the right ones before them, that the model finds most probable,
   * from 0 to 1; NaN if there are none. Null unless the option `accuracy` is set.
   */
  readonly accuracy: number | null;
  /** Number of target tokens, excluding padding. */
  readonly tokens: number;
  /** Number of batches evaluated, including those without a target token. */
  readonly batches: number;
  /** Total number of batches, if the source reports it; null otherwise. */
  readonly expectedBatches: number | null;
  /** False if the signal stopped the evaluation. */
  readonly complete: boolean;
}

/**
 * Computes the token-mean loss, and on request the accuracy, in eval mode and without gradients, then restores the mode of each
 * module of the model. It yields to the event loop between batches.
 *
 * @throws TypeError, RangeError if an argument is invalid, or if the source yields something that is
 *   not a batch
 */
export async function evaluate(
  model: Transformer,
  source: BatchSource,
  options: EvaluateOptions,
): Promise<Evaluation> {
  const owner = 'evaluate';
  checkModel(owner, model);
  const names = ['pad', 'epoch', 'accuracy', 'signal', 'onLongRows', 'onBatch'];
  checkRequiredOptions(owner, options, names, 'pad');
  const { pad, epoch = 1, accuracy = false, signal, onLongRows, onBatch } = options;
  checkInteger(owner, 'pad', pad, 0);
  checkInteger(owner, 'epoch', epoch, 1);
  checkBoolean(owner, 'accuracy', accuracy);
  checkSignal(owner, 'signal', signal);
  if (onLongRows !== undefined) checkFunction(owner, 'onLongRows', onLongRows);
  if (onBatch !== undefined) checkFunction(owner, 'onBatch', onBatch);
  const packs = isPackable(model);
  const restoreModes = keepModes(model);
  const batches = new BatchReader(owner, 'source', source, epoch);
  const mean = new TokenMean();
  let count = 0;
  let hits = 0;
  const state = (complete: boolean): Evaluation => ({
    loss: mean.mean,
    perplexity: Math.exp(mean.mean),
    accuracy: accuracy ? hits / mean.tokens : null,
    tokens: mean.tokens,
    batches: count,
    expectedBatches: batches.length,
    complete,
  });
  const isOnGpu = model.generator.proj.weight.device !== 'cpu';
  let pending: { sums: Promise<number[]>; tokens: number } | null = null;
  const take = async (one: typeof pending): Promise<void> => {
    if (one === null) return;
    const [lossSum = NaN, hitsOfBatch = 0] = await one.sums;
    count++;
    if (one.tokens === 0) return;
    mean.add(lossSum, one.tokens);
    hits += hitsOfBatch;
    onBatch?.({ index: count, loss: lossSum / one.tokens, tokens: one.tokens }, state(false));
  };
  model.eval();
  try {
    while (signal?.aborted !== true) {
      let outcome = await inScope(async () => {
        const [given] = await batches.take(1);
        if (given === undefined) return null;
        const { batch, leftOut } =
          onLongRows === undefined
            ? { batch: given, leftOut: [] }
            : withoutLongRows(model, given, pad);
        if (leftOut.length > 0) onLongRows?.(leftOut);
        if (batch === null || batch.ntokens === 0) return { sums: Promise.resolve([0]), tokens: 0 };
        const settings = { pad, scale: 1, packs };
        const sums = noGrad(() =>
          accuracy ? batchLossAndHits(model, batch, settings) : [batchLoss(model, batch, settings)],
        );
        return { sums: numbersOf(sums), tokens: batch.ntokens };
      });
      const isLast = outcome === null;
      // A GPU computes this batch while the loss of the previous one is read.
      if (isOnGpu) [pending, outcome] = [outcome, pending];
      await take(outcome);
      if (isLast) return state(true);
      await nextTurn();
    }
    await take(pending);
    return state(false);
  } finally {
    restoreModes();
    await batches.close();
  }
}

/** Reads the values of scalars immediately on the CPU, where they are already computed. */
async function numbersOf(scalars: readonly Tensor[]): Promise<number[]> {
  const numbers = tidy(() => {
    const rows = scalars.map((scalar) => scalar.to({ dtype: 'float64' }).reshape(1));
    return rows.length === 1 ? (rows[0] as Tensor) : cat(rows);
  });
  return numbers.device === 'cpu'
    ? Promise.resolve(numbers.toArray() as number[])
    : numbersLater(numbers);
}
