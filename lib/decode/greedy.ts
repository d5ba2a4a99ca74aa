/** Greedy decoding: the most probable token at each step. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import { checkRequiredOptions, checkSignal } from '../runtime/arguments.js';
import { checkTensor } from '../tensor/check.js';
import { tensor } from '../tensor/create.js';
import { callTensor } from '../tensor/dispatch.js';
import { keep, tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { where } from '../tensor/where.js';
import { checkIds } from '../nn/check.js';
import { checkEvalMode } from '../nn/module/modes.js';
import type { Transformer } from '../nn/model/transformer.js';
import { checkModel } from '../nn/model/checkModel.js';
import { nonFiniteFault } from './nonFinite.js';
import { checkMaxLength } from './positionLimit.js';
import { RecomputingStepDecoder, type StepDecoder } from './stepDecoder.js';

/** Options of {@link greedy}; the three ids are needed. */
export interface GreedyOptions extends SpecialIds {
  /**
   * Most tokens of a target, the end token included. Default and upper bound: the length of the
   * model's position table.
   */
  maxLength?: number | undefined;
  /** Aborts between two steps; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** One decoded target. */
export interface Decoded {
  /** Its tokens without bos and eos. */
  readonly ids: number[];
  /** False if it was cut off at `maxLength` before the model ended it. */
  readonly ended: boolean;
}

/**
 * Writes a target for each source row, token by token: always the most probable one (of equals
 * the lowest id), never pad or bos. The encoder runs once; a row that has ended takes no further
 * part. Between two steps the event loop gets a turn.
 *
 * The model must be in eval mode. A row of padding only is no sentence: leave it out.
 *
 * @param src source ids, int64 `[B, S]`
 * @param srcMask bool `[B, 1, S]`, true where a token may be attended
 * @returns one entry a row, in their order
 * @throws TypeError for a fault in the arguments, or if the model, or a part of it, is in training mode
 * @throws RangeError if `maxLength` exceeds the position table
 * @throws TorchError ERR_NON_FINITE if the probabilities of a row are NaN or infinite, as after
 *   weights that are, or numbers beyond the range of float16; it names the row and the parameter
 */
export async function greedy(
  model: Transformer,
  src: Tensor,
  srcMask: Tensor,
  options: GreedyOptions,
): Promise<Decoded[]> {
  checkModel('greedy', model);
  const names = ['bos', 'eos', 'pad', 'maxLength', 'signal'];
  checkRequiredOptions('greedy', options, names, 'pad, bos and eos');
  checkIds('greedy', 'src', src, 2);
  checkTensor('greedy', 'srcMask', srcMask);
  const { bos, eos, pad, signal } = options;
  checkSpecialIds({ pad, bos, eos }, model.generator.proj.outFeatures, 'greedy');
  checkSignal('greedy', 'signal', signal);
  const maxLength = checkMaxLength('greedy', options.maxLength, model);
  return searchGreedily(model, src, srcMask, {
    owner: 'greedy',
    nameOf: (row) => `row ${row} of src`,
    bos,
    eos,
    forbidden: [pad, bos],
    maxLength,
    signal,
  });
}

/** What {@link searchGreedily} needs. */
export interface GreedySearch {
  /** The function that the caller knows, for errors. */
  readonly owner: string;
  /** What the caller knows row i of `src` as, for errors. */
  readonly nameOf: (row: number) => string;
  readonly bos: number;
  readonly eos: number;
  /** Ids that are never written. */
  readonly forbidden: readonly number[];
  readonly maxLength: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * {@link greedy} with arguments that have been checked.
 * @throws TypeError if the model is in training mode; TorchError as {@link greedy}
 */
export async function searchGreedily(
  model: Transformer,
  src: Tensor,
  srcMask: Tensor,
  search: GreedySearch,
): Promise<Decoded[]> {
  const { owner, eos, maxLength, signal } = search;
  checkEvalMode(owner, model);
  signal?.throwIfAborted();
  if (src.shape[0] === 0) return [];
  const outputs = Array.from({ length: src.shape[0] as number }, (_, row) => ({
    row,
    ids: [] as number[],
    ended: false,
  }));
  const decoder: StepDecoder = new RecomputingStepDecoder(model, src, srcMask, search.bos);
  const never = keep(tensor(search.forbidden, { dtype: 'int64', device: src.device }));
  try {
    let live = outputs;
    for (let length = 1; length <= maxLength && live.length > 0; length++) {
      if (length > 1) await nextTurn();
      signal?.throwIfAborted();
      live = tidy(() => {
        const scores = callTensor(
          'aten::index_fill.int_Scalar',
          decoder.next(),
          1,
          never,
          -Infinity,
        );
        const best = scores.argmax(1);
        const tokens = readChosen(scores, best);
        const going: number[] = [];
        live.forEach((output, row) => {
          const token = tokens[row] as number;
          if (token < 0) {
            throw nonFiniteFault(model, `${owner}: ${search.nameOf(output.row)}`, length);
          }
          if (token === eos) {
            output.ended = true;
          } else {
            output.ids.push(token);
            going.push(row);
          }
        });
        if (going.length === 0 || length === maxLength) return [];
        decoder.append(best);
        if (going.length < live.length) {
          decoder.select(tensor(going, { dtype: 'int64', device: src.device }));
        }
        return going.map((row) => live[row] as (typeof live)[number]);
      });
    }
    return outputs.map(({ ids, ended }) => ({ ids, ended }));
  } finally {
    decoder.dispose();
    never.dispose();
  }
}

/**
 * The ids chosen, -1 where the log-probability of the choice is not finite: `argmax` takes NaN for
 * the largest of all. Decided on the device, so that each step waits for it once.
 *
 * @param scores log-probabilities `[rows, vocabulary]`
 * @param best int64 `[rows]`
 */
function readChosen(scores: Tensor, best: Tensor): number[] {
  const chosen = scores.gather(1, best.unsqueeze(1)).squeeze(1);
  const marked = where(callTensor('aten::isfinite', chosen), best, -1);
  return Array.from(marked.data() as BigInt64Array, Number);
}
