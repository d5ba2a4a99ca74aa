import {
  checkBoolean,
  checkOptions,
  checkProbability,
  orDefault,
} from '../../runtime/arguments.js';
import { checkTensor, formatShape } from '../../tensor/check.js';
import { call } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkAlike } from '../check.js';
import { Dropout } from '../layers/dropout.js';
import { checkEmptyRows, fitMask, fromAdditiveMask } from './mask.js';
import type { EmptyRows, ScoreSizes } from './mask.js';

/** Options of {@link attention}; by default there is no dropout and no mask. */
export interface AttentionOptions {
  /** the keys that each query may attend to (non-zero: yes); shapes and dtypes as in mask.ts */
  mask?: Tensor | null;
  /** instead of `mask`: 0 for keys that may be attended to, -Infinity for others */
  additiveMask?: Tensor | null;
  /** dropout probability of a weight, or a Dropout module, whose mode applies; default 0 */
  dropout?: number | Dropout;
  /** false disables a `dropout` given as a number; default true */
  training?: boolean;
  /** weights of a query that may not attend to any key; default `'uniform'` */
  emptyRows?: EmptyRows;
  /** whether to return the weights; does not change the output; default true */
  needWeights?: boolean;
}

/**
 * Scaled dot-product attention, softmax(query · keyᵀ / √Dk) · value (paper, section 3.2.1), in one
 * native op.
 *
 * @param query `[B, H, Sq, Dk]` or `[B, Sq, Dk]`
 * @param key `[B, H, Sk, Dk]` or `[B, Sk, Dk]`
 * @param value `[B, H, Sk, Dv]` or `[B, Sk, Dv]`
 * @returns the output `[B, H, Sq, Dv]` or `[B, Sq, Dv]`, and the weights after dropout
 *   `[B, H, Sq, Sk]` or `[B, Sq, Sk]` (null if `needWeights` is false)
 * @throws RangeError if shapes do not match; TypeError if dtypes differ or an option is invalid;
 *   TorchError ERR_DEVICE if devices differ
 */
export function attention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  options: AttentionOptions = {},
): [output: Tensor, weights: Tensor | null] {
  checkOptions('attention', options, optionNames);
  const sizes = scoreSizes(query, key, value);
  const emptyRows = checkEmptyRows('attention', orDefault(options.emptyRows, 'uniform'));
  const probability = dropProbability(options);
  const need_weights = checkBoolean(
    'attention',
    'needWeights',
    orDefault(options.needWeights, true),
  );
  return tidy(() => {
    const mask = givenMask(options);
    return call(
      'torchformer::attention',
      query,
      key,
      value,
      mask === null ? null : fitMask('attention', mask, sizes, query),
      probability,
      { empty_rows: emptyRows, need_weights },
    ) as [Tensor, Tensor | null];
  });
}

const optionNames = ['mask', 'additiveMask', 'dropout', 'training', 'emptyRows', 'needWeights'];

function givenMask({ mask, additiveMask }: AttentionOptions): Tensor | null {
  if (additiveMask === undefined || additiveMask === null) return mask ?? null;
  if (mask !== undefined && mask !== null) {
    throw new TypeError(
      'attention: pass mask or additiveMask, not both; combine them with combineMasks(mask, fromAdditiveMask(…))',
    );
  }
  return fromAdditiveMask(additiveMask);
}

function dropProbability({ dropout = 0, training }: AttentionOptions): number {
  if (training !== undefined) checkBoolean('attention', 'training', training);
  if (dropout instanceof Dropout) return training === false ? 0 : dropout.activeProbability;
  checkProbability('attention', 'dropout', dropout);
  return training === false ? 0 : dropout;
}

/** Checks that the three shapes match. */
function scoreSizes(query: Tensor, key: Tensor, value: Tensor): ScoreSizes {
  checkTensor('attention', 'query', query);
  checkTensor('attention', 'key', key);
  checkTensor('attention', 'value', value);
  checkAlike('attention', 'key', key, 'the queries', query);
  checkAlike('attention', 'value', value, 'the queries', query);
  const [q, k, v] = [query.shape, key.shape, value.shape];
  const shapes = `query ${formatShape(q)}, key ${formatShape(k)}, value ${formatShape(v)}`;
  if ((q.length !== 3 && q.length !== 4) || k.length !== q.length || v.length !== q.length) {
    throw new RangeError(
      `attention: query, key and value must all be [B, S, D] or all [B, H, S, D], got ${shapes}`,
    );
  }
  const leading = (shape: readonly number[]) => shape.slice(0, -2).join();
  if (leading(q) !== leading(k) || leading(q) !== leading(v)) {
    throw new RangeError(`attention: batch and heads must be equal, got ${shapes}`);
  }
  if (q.at(-1) !== k.at(-1)) {
    throw new RangeError(
      `attention: query and key must have the same last dimension, got ${shapes}`,
    );
  }
  if (k.at(-2) !== v.at(-2)) {
    throw new RangeError(`attention: key and value must have the same length, got ${shapes}`);
  }
  return {
    batch: q[0] as number,
    heads: q.length === 4 ? (q[1] as number) : null,
    queries: q.at(-2) as number,
    keys: k.at(-2) as number,
  };
}
