/**
 * The contract of attention masks:
 *
 * - non-zero means "may be attended to", 0 means "blocked" (seeds 000 and 001; seed 002 inverts);
 * - dtypes: bool, or numbers that are all 0 or 1; the result is identical for all dtypes;
 * - shapes, for B sequences, H heads, Sq queries and Sk keys: `[Sq|1, Sk]` (never `[B, Sk]`),
 *   `[B|1, Sq|1, Sk]` (the batch always comes first), `[B|1, H|1, Sq|1, Sk]`;
 * - masks that are added to scores (0 and -Infinity) are passed as a separate option,
 *   `additiveMask`, and converted to bool;
 * - a query whose keys are all blocked gets equal weights for the Sk keys of the mask
 *   (`emptyRows: 'uniform'`, like a finite fill such as the seeds' -1e9), or zeros
 *   (`emptyRows: 'zero'`); never NaN.
 */
import { checkChoice, checkInteger, checkString } from '../../runtime/arguments.js';
import { checkTensor, formatShape } from '../../tensor/check.js';
import { ones } from '../../tensor/create.js';
import type { DeviceChoice } from '../../tensor/device.js';
import { callTensor } from '../../tensor/dispatch.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkIds, checkSameDevice } from '../check.js';

/** Weights of a query whose keys are all blocked; see the top of this file. */
export type EmptyRows = 'uniform' | 'zero';

/** The sizes of attention scores; `heads` is null for scores without a head dimension. */
export interface ScoreSizes {
  readonly batch: number;
  readonly heads: number | null;
  readonly queries: number;
  readonly keys: number;
}

/**
 * Returns a mask of the tokens that are not padding.
 *
 * @param ids `[B, S]`, int64 or int32
 * @param pad id of the padding token
 * @returns bool `[B, 1, S]`
 * @throws TypeError, RangeError if `ids` or `pad` is invalid
 */
export function paddingMask(ids: Tensor, pad: number): Tensor {
  checkIds('paddingMask', 'ids', ids, 2);
  checkInteger('paddingMask', 'pad', pad, Number.MIN_SAFE_INTEGER);
  return tidy(() => ids.ne(pad).unsqueeze(1));
}

/**
 * Returns the causal mask, with which each position sees itself and the positions before it.
 *
 * @param size number of positions, at least 0
 * @param options `device`: device of the mask; default `'cpu'`
 * @returns bool `[1, size, size]`, true on and below the diagonal
 * @throws TypeError, RangeError if `size` or `device` is invalid
 */
export function subsequentMask(size: number, options: { device?: DeviceChoice } = {}): Tensor {
  checkInteger('subsequentMask', 'size', size, 0);
  return tidy(() => callTensor('aten::tril', ones([1, size, size], { ...options, dtype: 'bool' })));
}

/**
 * Returns the decoder's mask, which blocks padding and later positions (paper, section 3.2.3).
 *
 * @param ids `[B, T]`, int64 or int32
 * @param pad id of the padding token
 * @returns bool `[B, T, T]`
 * @throws TypeError, RangeError if `ids` or `pad` is invalid
 */
export function targetMask(ids: Tensor, pad: number): Tensor {
  checkIds('targetMask', 'ids', ids, 2);
  return tidy(() => {
    const [, length] = ids.shape as [number, number];
    return paddingMask(ids, pad).logicalAnd(subsequentMask(length, { device: ids.device }));
  });
}

/**
 * Returns the positions that every mask allows:
 * `combineMasks(paddingMask(ids, pad), subsequentMask(size))`.
 * Sizes of 1 are broadcast. The number of dimensions must be equal, because `[S, S]` combined with
 * `[B, 1, S]` would be ambiguous about the batch.
 *
 * @returns bool, of the broadcast shape
 * @throws TypeError if an argument is not a mask; RangeError if shapes do not match; TorchError
 *   ERR_DEVICE if devices differ
 */
export function combineMasks(first: Tensor, ...others: Tensor[]): Tensor {
  const owner = 'combineMasks';
  return tidy(() => {
    let combined = booleanMask(owner, first);
    for (const other of others) {
      const allowed = booleanMask(owner, other);
      const [shape, otherShape] = [combined.shape, allowed.shape];
      const shapes = `${formatShape(shape)} and ${formatShape(otherShape)}`;
      if (otherShape.length !== shape.length) {
        throw new RangeError(
          `${owner}: masks must have the same number of dimensions, got ${shapes}`,
        );
      }
      if (!shape.every((size, index) => size === 1 || [size, 1].includes(otherShape[index] ?? 1))) {
        throw new RangeError(`${owner}: masks must have equal sizes, or 1, got ${shapes}`);
      }
      checkSameDevice(owner, 'a mask', allowed, 'the masks before it', combined);
      combined = combined.logicalAnd(allowed);
    }
    // A single bool mask is the caller's tensor, which must survive disposal of the result.
    return combined === first ? first.detach() : combined;
  });
}

/**
 * Converts a mask to bool; a bool mask is returned unchanged.
 *
 * @param owner prefix of error messages, such as `'MyAttention'`
 * @param mask any shape; bool, or numbers that are all 0 or 1
 * @returns bool, the same shape
 * @throws TypeError if `mask` is not a tensor, or contains numbers other than 0 and 1
 */
export function booleanMask(owner: string, mask: Tensor): Tensor {
  checkString('booleanMask', 'owner', owner);
  return checkedBooleans(owner, mask, {
    meaning: '0 (blocked) and 1 (may be attended to)',
    additiveHint:
      '; this one looks like an additive mask: pass it as additiveMask ' +
      'to attention(), or as fromAdditiveMask(mask)',
  });
}

/**
 * Converts a mask of the opposite convention (true or 1: blocked) to the one of this file: true for
 * keys that may be attended to.
 *
 * @throws TypeError if `blocked` is not a tensor, or contains numbers other than 0 and 1
 */
export function fromBlockedMask(owner: string, blocked: Tensor): Tensor {
  const meaning = '0 (may be attended to) and 1 (blocked)';
  const additiveHint = '; this one looks like an additive mask: pass mask.lt(0)';
  return tidy(() => checkedBooleans(owner, blocked, { meaning, additiveHint }).logicalNot());
}

function checkedBooleans(
  owner: string,
  mask: Tensor,
  words: { meaning: string; additiveHint: string },
): Tensor {
  if (mask === undefined) {
    throw new TypeError(
      `${owner}: mask must be a Tensor, or null to attend to everything; it is missing`,
    );
  }
  checkTensor(owner, 'mask', mask);
  if (mask.dtype === 'bool') return mask;
  return tidy(() => {
    const valid = mask.eq(0).logicalOr(mask.eq(1));
    if (valid.all().item() !== 1) {
      const additive = isFloatingPoint(mask.dtype) && mask.lt(0).any().item() === 1;
      throw new TypeError(
        `${owner}: mask must be bool or contain only ${words.meaning}` +
          (additive
            ? words.additiveHint
            : `, got other numbers in ${formatShape(mask.shape)} of ${mask.dtype}`),
      );
    }
    return mask.ne(0);
  });
}

/**
 * Converts an additive mask to bool: 0 means "may be attended to"; -Infinity and finite fills such
 * as -1e9 (any value up to -10,000) mean "blocked".
 *
 * @param mask any shape, floating-point
 * @returns bool, the same shape
 * @throws TypeError if the dtype is not floating-point; RangeError for any other value
 */
export function fromAdditiveMask(mask: Tensor): Tensor {
  checkTensor('fromAdditiveMask', 'additiveMask', mask);
  if (!isFloatingPoint(mask.dtype)) {
    throw new TypeError(
      `fromAdditiveMask: additiveMask must be floating-point, got ${mask.dtype}; pass a bool or 0/1 mask as mask`,
    );
  }
  return tidy(() => {
    const open = mask.eq(0);
    if (open.logicalOr(mask.le(-1e4)).all().item() !== 1) {
      throw new RangeError(
        'fromAdditiveMask: additiveMask must contain only 0 and -Infinity (or fills of at most -10000): ' +
          'biases of individual scores are not supported',
      );
    }
    return open;
  });
}

/**
 * Rejects a decoder's mask of the opposite convention: a causal mask with true for "blocked". It is
 * detected with padding anywhere, with rows that are all padding, and with windows. Masks are
 * accepted if positions see themselves (full, prefix and windowed masks) or everything except
 * themselves, or if the mask is valid in both conventions, such as one token before padding.
 *
 * @param mask bool `[…, T, T]`; checked only on the CPU, where no device has to be waited for
 * @throws TypeError
 */
export function rejectInvertedCausal(owner: string, name: string, mask: Tensor): void {
  const shape = mask.shape;
  if (mask.device !== 'cpu' || shape.length < 2 || shape.at(-1) !== shape.at(-2)) return;
  if (mask.numel === 0 || mask.shape.at(-1) === 1) return;
  if (!tidy(() => onlyFutureOpen(mask) || isInvertedCausal(mask))) return;
  throw new TypeError(
    `${owner}: ${name} blocks every position from itself and allows later ones, like a mask with ` +
      'true for "blocked" does; here true means "may be attended to": pass mask.logicalNot()',
  );
}

/** Whether no position sees itself or the one before it, but some see later ones. */
function onlyFutureOpen(mask: Tensor): boolean {
  if (holds(diagonal(mask, 0)) || holds(diagonal(mask, -1))) return false;
  return holds(callTensor('aten::triu', mask, 1));
}

/**
 * Whether every matrix may be the `logicalNot` of a causal mask, and at least one certainly is.
 * In such a matrix all later positions are open, and a position sees itself or the one before it
 * only if that is padding, that is, a column open to all.
 */
function isInvertedCausal(mask: Tensor): boolean {
  const T = mask.shape.at(-1) as number;
  // A cheap test that causal masks fail, before anything of the size of the mask is computed.
  if (!holdsAll(mask.select(-2, 0).narrow(-1, 1, T - 1))) return false;
  const eye = callTensor('aten::eye', T, { dtype: 'bool' });
  const future = callTensor('aten::triu', ones([T, T], { dtype: 'bool' }), 1);
  const own = diagonal(mask, 0);
  const openColumn = mask.all(-2);
  // Masks that avoid empty rows leave the diagonal open for padding; inverted, it is blocked.
  const openBesideDiagonal = mask.logicalOr(eye).all(-2);
  const before = diagonal(mask, -1);
  const [ownLater, openBefore] = [own.narrow(-1, 1, T - 1), openColumn.narrow(-1, 0, T - 1)];
  const explained = openBesideDiagonal.narrow(-1, 0, T - 1).logicalOr(ownLater);
  const consistent =
    holdsAll(mask.logicalOr(future.logicalNot())) &&
    holdsAll(own.logicalNot().logicalOr(openColumn)) &&
    holdsAll(before.logicalNot().logicalOr(explained));
  if (!consistent) return false;
  // Certain if a later token sees neither itself nor the token before it, unless that is padding.
  return holds(ownLater.logicalNot().logicalAnd(before.logicalNot().logicalOr(openBefore)));
}

function diagonal(mask: Tensor, offset: number): Tensor {
  return callTensor('aten::diagonal', mask, offset, -2, -1);
}

function holds(mask: Tensor): boolean {
  return mask.any().item() === 1;
}

function holdsAll(mask: Tensor): boolean {
  return mask.all().item() === 1;
}

/**
 * Converts a mask to bool and to the rank of the scores, so that it can be broadcast.
 *
 * @returns `[B|1, H|1, Sq|1, Sk]`, or `[B|1, Sq|1, Sk]` if `sizes.heads` is null
 * @throws RangeError if the shape does not match; TypeError for an invalid dtype or value; TorchError
 *   ERR_DEVICE if devices differ
 */
export function fitMask(owner: string, mask: Tensor, sizes: ScoreSizes, like: Tensor): Tensor {
  checkTensor(owner, 'mask', mask);
  const shape = mask.shape;
  const { batch, heads, queries, keys } = sizes;
  const full = heads === null ? [batch, queries, keys] : [batch, heads, queries, keys];
  const expected = shape.length === 3 ? [batch, queries, keys] : full.slice(-shape.length);
  const ranks = heads === null ? [2, 3] : [2, 3, 4];
  const fits =
    ranks.includes(shape.length) &&
    shape.at(-1) === keys &&
    shape.every((size, dimension) => size === 1 || size === expected[dimension]);
  if (!fits) throw new RangeError(misfit(owner, shape, sizes, full));
  checkSameDevice(owner, 'mask', mask, 'the scores', like);
  return tidy(() => {
    let fitted = booleanMask(owner, mask);
    if (shape.length === 2) fitted = fitted.unsqueeze(0);
    if (heads !== null && shape.length < 4) fitted = fitted.unsqueeze(1);
    return fitted;
  });
}

function misfit(
  owner: string,
  shape: readonly number[],
  { batch, heads, queries, keys }: ScoreSizes,
  full: readonly number[],
): string {
  const accepted = [
    `[${queries}|1, ${keys}]`,
    `[${batch}|1, ${queries}|1, ${keys}]`,
    ...(heads === null ? [] : [`[${batch}|1, ${heads}|1, ${queries}|1, ${keys}]`]),
  ];
  const perSequence = shape.length === 2 && shape[0] === batch && shape[1] === keys;
  return (
    `${owner}: mask ${formatShape(shape)} does not fit scores ${formatShape(full)}; ` +
    `accepted: ${accepted.join(', ')}` +
    (perSequence ? '; a mask with one row per sequence needs mask.unsqueeze(1)' : '')
  );
}

/** @throws TypeError unless `value` is 'uniform' or 'zero' */
export function checkEmptyRows(owner: string, value: unknown): EmptyRows {
  return checkChoice(owner, 'emptyRows', value, ['uniform', 'zero']);
}
