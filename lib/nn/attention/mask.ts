/**
 * Attention masks, the whole contract:
 *
 * - non-zero means "may be attended", 0 means "blocked" (seeds 000 and 001; seed 002 inverts);
 * - dtypes: bool, or numbers that are all 0 or 1; every one gives the same bits;
 * - shapes, for B sequences, H heads, Sq queries and Sk keys: `[Sq|1, Sk]` (never `[B, Sk]`),
 *   `[B|1, Sq|1, Sk]` (the batch comes first, always), `[B|1, H|1, Sq|1, Sk]`;
 * - masks that are added to scores (0 and -Infinity) come through an option of their own,
 *   `additiveMask`, and are turned into bool;
 * - a query with every key blocked gets equal weights over the Sk keys of the mask given
 *   (`emptyRows: 'uniform'`, what a finite fill such as the seeds' -1e9 does), or zeros
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

/** What a query without any key to attend gets; see the head of this file. */
export type EmptyRows = 'uniform' | 'zero';

/** The sizes of attention scores; `heads` is null for scores without a dimension of heads. */
export interface ScoreSizes {
  readonly batch: number;
  readonly heads: number | null;
  readonly queries: number;
  readonly keys: number;
}

/**
 * Which tokens are no padding.
 *
 * @param ids `[B, S]`, int64 or int32
 * @param pad the padding's id
 * @returns bool `[B, 1, S]`
 * @throws TypeError, RangeError for what are no ids or no id
 */
export function paddingMask(ids: Tensor, pad: number): Tensor {
  checkIds('paddingMask', 'ids', ids, 2);
  checkInteger('paddingMask', 'pad', pad, Number.MIN_SAFE_INTEGER);
  return tidy(() => ids.ne(pad).unsqueeze(1));
}

/**
 * Which positions each position may see: itself and those before it.
 *
 * @param size number of positions, at least 0
 * @param options `device`: where the mask is; default `'cpu'`
 * @returns bool `[1, size, size]`, true on and below the diagonal
 * @throws TypeError, RangeError for a size or device that is none
 */
export function subsequentMask(size: number, options: { device?: DeviceChoice } = {}): Tensor {
  checkInteger('subsequentMask', 'size', size, 0);
  return tidy(() => callTensor('aten::tril', ones([1, size, size], { ...options, dtype: 'bool' })));
}

/**
 * The decoder's mask: no padding, and nothing from the future (paper, section 3.2.3).
 *
 * @param ids `[B, T]`, int64 or int32
 * @param pad the padding's id
 * @returns bool `[B, T, T]`
 * @throws TypeError, RangeError for what are no ids or no id
 */
export function targetMask(ids: Tensor, pad: number): Tensor {
  checkIds('targetMask', 'ids', ids, 2);
  return tidy(() => {
    const [, length] = ids.shape as [number, number];
    return paddingMask(ids, pad).logicalAnd(subsequentMask(length, { device: ids.device }));
  });
}

/**
 * Positions that every mask allows: `combineMasks(paddingMask(ids, pad), subsequentMask(size))`.
 * Sizes of 1 are broadcast; the number of dimensions must be equal, because `[S, S]` beside
 * `[B, 1, S]` would leave open what is a batch.
 *
 * @returns bool, of the sizes that all have together
 * @throws TypeError for anything but masks on one device, RangeError naming two shapes that do not
 *   fit
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
    // A single bool mask is the caller's own tensor, which lives on when the result is disposed of.
    return combined === first ? first.detach() : combined;
  });
}

/**
 * The mask as bool; a bool mask is returned as it is.
 *
 * @param owner what the mask is for, with which the messages begin: `'MyAttention'`
 * @param mask any shape; bool, or numbers that are all 0 or 1
 * @returns bool, the same shape
 * @throws TypeError for anything but a tensor of bools, zeros and ones
 */
export function booleanMask(owner: string, mask: Tensor): Tensor {
  checkString('booleanMask', 'owner', owner);
  return checkedBooleans(owner, mask, {
    meaning: '0 (blocked) and 1 (may be attended)',
    additiveHint:
      '; this one looks like a mask to add to the scores: pass it as additiveMask ' +
      'to attention(), or as fromAdditiveMask(mask)',
  });
}

/**
 * A mask of the opposite sense (true, or 1: blocked) as one of this file's: true where a key may
 * be attended.
 *
 * @throws TypeError for anything but a tensor of bools, zeros and ones
 */
export function fromBlockedMask(owner: string, blocked: Tensor): Tensor {
  const meaning = '0 (may be attended) and 1 (blocked)';
  const additiveHint = '; this one looks like a mask to add to the scores: pass mask.lt(0)';
  return tidy(() => checkedBooleans(owner, blocked, { meaning, additiveHint }).logicalNot());
}

function checkedBooleans(
  owner: string,
  mask: Tensor,
  words: { meaning: string; additiveHint: string },
): Tensor {
  if (mask === undefined) {
    throw new TypeError(
      `${owner}: mask must be a Tensor, or null to attend everything; it is missing`,
    );
  }
  checkTensor(owner, 'mask', mask);
  if (mask.dtype === 'bool') return mask;
  return tidy(() => {
    const valid = mask.eq(0).logicalOr(mask.eq(1));
    if (valid.all().item() !== 1) {
      const additive = isFloatingPoint(mask.dtype) && mask.lt(0).any().item() === 1;
      throw new TypeError(
        `${owner}: mask must be bool or hold only ${words.meaning}` +
          (additive
            ? words.additiveHint
            : `, got other numbers in ${formatShape(mask.shape)} of ${mask.dtype}`),
      );
    }
    return mask.ne(0);
  });
}

/**
 * A mask that was made to be added to scores, as bool: 0 may be attended; -Infinity, and finite
 * fills such as -1e9 (anything from -10,000 down), are blocked.
 *
 * @param mask any shape, floating
 * @returns bool, the same shape
 * @throws TypeError for integers and bools, RangeError for values between
 */
export function fromAdditiveMask(mask: Tensor): Tensor {
  checkTensor('fromAdditiveMask', 'additiveMask', mask);
  if (!isFloatingPoint(mask.dtype)) {
    throw new TypeError(
      `fromAdditiveMask: additiveMask must be floating, got ${mask.dtype}; a bool or 0/1 mask goes in as mask`,
    );
  }
  return tidy(() => {
    const open = mask.eq(0);
    if (open.logicalOr(mask.le(-1e4)).all().item() !== 1) {
      throw new RangeError(
        'fromAdditiveMask: additiveMask must hold only 0 and -Infinity (or fills of at most -10000): ' +
          'biases on single scores are not supported',
      );
    }
    return open;
  });
}

/**
 * Refuses a decoder's mask of the opposite sense: a causal mask with true for "blocked". It is told
 * with padding anywhere, with rows of padding only, and with windows. Accepted are all masks that
 * let positions see themselves (full, prefix and windowed ones) or let them see all but themselves,
 * and what can be of either sense, such as one token before padding.
 *
 * @param mask bool `[…, T, T]`; looked at on the CPU only, where that does not wait for a device
 * @throws TypeError
 */
export function refuseInvertedCausal(owner: string, name: string, mask: Tensor): void {
  const shape = mask.shape;
  if (mask.device !== 'cpu' || shape.length < 2 || shape.at(-1) !== shape.at(-2)) return;
  if (mask.numel === 0 || mask.shape.at(-1) === 1) return;
  if (!tidy(() => onlyFutureOpen(mask) || isInvertedCausal(mask))) return;
  throw new TypeError(
    `${owner}: ${name} blocks every position from itself and allows later ones, as a mask with ` +
      'true for "blocked" does; here true means "may be attended": pass mask.logicalNot()',
  );
}

/** Whether no position sees itself or the one before it, but some see later ones. */
function onlyFutureOpen(mask: Tensor): boolean {
  if (holds(diagonal(mask, 0)) || holds(diagonal(mask, -1))) return false;
  return holds(callTensor('aten::triu', mask, 1));
}

/**
 * Whether every matrix is what `logicalNot` makes of a causal mask, and one leaves no doubt.
 * There all that is later is open, and a position sees itself, or the one before it, only where
 * that is padding: a column that is open to all.
 */
function isInvertedCausal(mask: Tensor): boolean {
  const T = mask.shape.at(-1) as number;
  // What a causal mask fails at once, before anything of the size of the mask is computed.
  if (!holdsAll(mask.select(-2, 0).narrow(-1, 1, T - 1))) return false;
  const eye = callTensor('aten::eye', T, { dtype: 'bool' });
  const future = callTensor('aten::triu', ones([T, T], { dtype: 'bool' }), 1);
  const own = diagonal(mask, 0);
  const openColumn = mask.all(-2);
  // Masks against empty rows leave the diagonal of padding open, which blocks it here.
  const openBesideDiagonal = mask.logicalOr(eye).all(-2);
  const before = diagonal(mask, -1);
  const [ownLater, openBefore] = [own.narrow(-1, 1, T - 1), openColumn.narrow(-1, 0, T - 1)];
  const explained = openBesideDiagonal.narrow(-1, 0, T - 1).logicalOr(ownLater);
  const consistent =
    holdsAll(mask.logicalOr(future.logicalNot())) &&
    holdsAll(own.logicalNot().logicalOr(openColumn)) &&
    holdsAll(before.logicalNot().logicalOr(explained));
  if (!consistent) return false;
  // A token that does not see itself while one before it does.
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
 * Brings a mask to bool and to the rank of the scores, ready to be broadcast.
 *
 * @returns `[B|1, H|1, Sq|1, Sk]`, or `[B|1, Sq|1, Sk]` when `sizes.heads` is null
 * @throws RangeError naming both shapes, TypeError for dtype, values or device
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
    (perSequence ? '; a mask of one row a sequence needs mask.unsqueeze(1)' : '')
  );
}

/** @throws TypeError for anything but 'uniform' and 'zero' */
export function checkEmptyRows(owner: string, value: unknown): EmptyRows {
  return checkChoice(owner, 'emptyRows', value, ['uniform', 'zero']);
}
