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

/** Options of {@link greedy}; the three ids are required. */
export interface GreedyOptions extends SpecialIds {
  /**
   * Maximum number of tokens of a target, including the end token. Default and upper bound: the length
   * of the model's position table.
   */
  maxLength?: number | undefined;
  /** Aborts between steps; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** One decoded target. */
export interface Decoded {
  /** Its token ids without bos and eos. */
  readonly ids: number[];
  /** False if it was cut off at `maxLength` before the model ended it. */
  readonly ended: boolean;
}

/**
 * Decodes a target for each source row, token by token: always the most probable token (the lowest id
 * among equals), never pad or bos. The encoder runs once; rows that have ended are dropped. It yields to
 * the event loop between steps.
 *
 * The model must be in eval mode. A row must not consist of padding only.
 *
 * @param src source ids, int64 `[B, S]`
 * @param srcMask bool `[B, 1, S]`, true where a token may be attended
 * @returns one entry per row, in order
 * @throws TypeError if an argument is invalid, or if the model or one of its modules is in training mode
 * @throws RangeError if `maxLength` exceeds the position table
 * @throws TorchError ERR_NON_FINITE if the probabilities of a row are NaN or infinite, because weights
 *   are not finite or values exceed the range of float16; it names the row and the parameter
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
    maxLengths: src.shape.slice(0, 1).flatMap((rows) => Array<number>(rows).fill(maxLength)),
    signal,
  });
}

/** Options of {@link searchGreedily}. */
export interface GreedySearch {
  /** The public function, for errors. */
  readonly owner: string;
  /** The caller's name for row i of `src`, for errors. */
  readonly nameOf: (row: number) => string;
  readonly bos: number;
  readonly eos: number;
  /** Ids that are never generated. */
  readonly forbidden: readonly number[];
  /** Maximum number of tokens of each row, including the end token. */
  readonly maxLengths: readonly number[];
  readonly signal: AbortSignal | undefined;
}

/**
 * {@link greedy} with arguments already checked.
 * @throws TypeError if the model is in training mode; TorchError as {@link greedy}
 */
export async function searchGreedily(
  model: Transformer,
  src: Tensor,
  srcMask: Tensor,
  search: GreedySearch,
): Promise<Decoded[]> {
  const { owner, eos, maxLengths, signal } = search;
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
    for (let length = 1; live.length > 0; length++) {
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
            if (length < (maxLengths[output.row] as number)) going.push(row);
          }
        });
        if (going.length === 0) return [];
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
 * The chosen ids, or -1 if the log-probability of the choice is not finite: `argmax` treats NaN as the
 * maximum. Computed on the device, so that each step waits for it only once.
 *
 * @param scores log-probabilities `[rows, vocabulary]`
 * @param best int64 `[rows]`
 */
function readChosen(scores: Tensor, best: Tensor): number[] {
  const chosen = scores.gather(1, best.unsqueeze(1)).squeeze(1);
  const marked = where(callTensor('aten::isfinite', chosen), best, -1);
  return Array.from(marked.data() as BigInt64Array, Number);
}
