/** Greedy decoding: the most probable token at each step. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import { checkRequiredOptions, checkSignal } from '../runtime/options.js';
import { checkTensor } from '../tensor/check.js';
import { tensor } from '../tensor/create.js';
import { callTensor } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkIds } from '../nn/check.js';
import type { Transformer } from '../nn/model/transformer.js';
import { checkModel } from '../nn/model/checkModel.js';
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
 * @throws TypeError for a fault in the arguments, or if the model is in training mode
 * @throws RangeError if `maxLength` exceeds the position table
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
  if (model.training) {
    throw new TypeError(
      'greedy: the model is in training mode, so dropout would change the result; call model.eval()',
    );
  }
  checkIds('greedy', 'src', src, 2);
  checkTensor('greedy', 'srcMask', srcMask);
  const { bos, eos, pad, signal } = options;
  checkSpecialIds({ pad, bos, eos }, model.generator.proj.outFeatures, 'greedy');
  checkSignal('greedy', 'signal', signal);
  const maxLength = checkMaxLength('greedy', options.maxLength, model);
  signal?.throwIfAborted();
  if (src.shape[0] === 0) return [];

  const decoder = new RecomputingStepDecoder(model, src, srcMask, bos);
  try {
    return await search(decoder, src, { eos, forbidden: [pad, bos], maxLength, signal });
  } finally {
    decoder.dispose();
  }
}

async function search(
  decoder: StepDecoder,
  src: Tensor,
  options: { eos: number; forbidden: number[]; maxLength: number; signal: AbortSignal | undefined },
): Promise<Decoded[]> {
  const { eos, forbidden, maxLength, signal } = options;
  const outputs = Array.from({ length: src.shape[0] as number }, () => ({
    ids: [] as number[],
    ended: false,
  }));
  let live = outputs;
  for (let length = 1; length <= maxLength; length++) {
    if (length > 1) await nextTurn();
    signal?.throwIfAborted();
    live = tidy(() => {
      const never = tensor(forbidden, { dtype: 'int64', device: src.device });
      const scores = callTensor('aten::index_fill.int_Scalar', decoder.next(), 1, never, -Infinity);
      const best = scores.argmax(1);
      const tokens = Array.from(best.data() as BigInt64Array, Number);
      const going: number[] = [];
      live.forEach((output, row) => {
        const token = tokens[row] as number;
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
    if (live.length === 0) break;
  }
  return outputs;
}
