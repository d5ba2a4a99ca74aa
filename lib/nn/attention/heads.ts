/** Splits and joins the heads of multi-head attention (paper, section 3.2.2). */
import { formatShape } from '../../tensor/check.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';

/**
 * Splits vectors into `heads` equal parts.
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
 * Checks the inputs of a multi-head attention module.
 *
 * @param weight a weight with the required dtype and device
 * @throws RangeError unless query is `[B, Sq, dModel]`, and key and value are `[B, Sk, dModel]`;
 *   TypeError or TorchError ERR_DEVICE if dtype or device differ from the weight's
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

/** @throws RangeError unless `heads` divides `dModel`. `names`: the owner's names for both */
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
