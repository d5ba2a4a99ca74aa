/** The two reshapings around attention with several heads (paper, section 3.2.2). */
import { formatShape } from '../../tensor/check.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';

/**
 * Vectors in `heads` equal pieces, for attention side by side.
 *
 * @param input `[B, S, D]`; `heads` must divide D
 * @returns a view `[B, heads, S, D / heads]`
 */
export function splitHeads(input: Tensor, heads: number): Tensor {
  const [batch, length, width] = input.shape as [number, number, number];
  return tidy(() => input.reshape(batch, length, heads, width / heads).transpose(1, 2));
}

/**
 * The inverse of {@link splitHeads}.
 *
 * @param input `[B, H, S, D]`
 * @returns `[B, S, H · D]`
 */
export function joinHeads(input: Tensor): Tensor {
  const [batch, heads, length, width] = input.shape as [number, number, number, number];
  return tidy(() => input.transpose(1, 2).reshape(batch, length, heads * width));
}

/**
 * Checks the inputs of a module that attends with several heads.
 *
 * @param weight whose dtype and device the inputs must have
 * @throws RangeError naming the shapes unless query is `[B, Sq, dModel]`, and key and value are
 *   `[B, Sk, dModel]`; TypeError for another dtype or device
 */
export function checkAttentionInputs(
  owner: string,
  inputs: { query: Tensor; key: Tensor; value: Tensor },
  dModel: number,
  weight: Tensor,
): void {
  const { query, key, value } = inputs;
  checkFeatures(owner, 'query', query, dModel, weight);
  if (key !== query) checkFeatures(owner, 'key', key, dModel, weight);
  if (value !== key) checkFeatures(owner, 'value', value, dModel, weight);
  const [q, k, v] = [query.shape, key.shape, value.shape];
  if (q.length === 3 && k.length === 3 && q[0] === k[0] && k.join() === v.join()) return;
  throw new RangeError(
    `${owner}: query must be [B, Sq, ${dModel}], key and value [B, Sk, ${dModel}], ` +
      `got ${formatShape(q)}, ${formatShape(k)}, ${formatShape(v)}`,
  );
}

/** @throws RangeError unless `heads` divides `dModel`. `names`: what the owner calls the two */
export function checkHeads(
  owner: string,
  heads: number,
  dModel: number,
  names: { heads: string; dModel: string } = { heads: 'h', dModel: 'dModel' },
): void {
  if (dModel % heads === 0) return;
  throw new RangeError(
    `${owner}: ${names.heads} must divide ${names.dModel}, got ${heads} heads for ${names.dModel} ${dModel}`,
  );
}
