/**
 * Indexing like Python's `x[…]`: a list of integers, slices, masks, positions and new dimensions.
 * Views are taken one by one; masks and positions, which copy, are applied by one op at the end, as
 * in PyTorch.
 */
import { checkInteger, describe } from '../runtime/arguments.js';
import { checkIndex, formatShape, sizeAt } from './check.js';
import { callTensor, native } from './dispatch.js';
import { checkGpuPositions } from './gpuPositions.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

type Bound = '' | `${number}`;

/** `start:end` or `start:end:step` as in Python; each part is optional. */
export type SliceText = `${Bound}:${Bound}` | `${Bound}:${Bound}:${Bound}`;

/** A part of a dimension. Negative positions count from the end. */
export interface SliceRange {
  /** Default 0. */
  start?: number | null;
  /** Exclusive. Default: the size. */
  end?: number | null;
  /** At least 1. Default 1. */
  step?: number;
}

/**
 * One item of `x.index(…)`:
 * - an integer selects one index and removes the dimension
 * - `':'`, `'1:'`, `':-1'`, `'::2'` or `{start, end, step}` select a range
 * - `'...'` represents as many `':'` as are missing; allowed once
 * - `null` inserts a new dimension of size 1
 * - an int64 tensor or an array of integers selects positions, with a copy; several are broadcast
 *   against each other
 * - a bool tensor or an array of booleans selects where it is true, with a copy; it indexes as many
 *   dimensions as it has
 */
export type Index =
  number | SliceText | '...' | SliceRange | null | Tensor | readonly number[] | readonly boolean[];

/** The result of all views, and the positions that remain. */
export interface IndexedView {
  /** Never the tensor itself. */
  readonly view: Tensor;
  /** For each dimension, positions or null; empty if all indices were views. */
  readonly positions: readonly (Tensor | null)[];
  /** Temporary tensors, to be disposed of after use. */
  readonly made: readonly Tensor[];
}

const slicePattern = /^(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?$/;

/** Applies the views in `indices`; masks and positions are returned, to be applied by one op. */
export function indexedView(owner: string, self: Tensor, indices: readonly Index[]): IndexedView {
  const made: Tensor[] = [];
  const items = readItems(owner, self, indices, made);
  const { shape } = self;
  const taken = items.reduce<number>((count, item) => count + dimensionsOf(item), 0);
  if (taken > shape.length) {
    throw new RangeError(`${owner}: ${taken} indices for a tensor of shape ${formatShape(shape)}`);
  }
  let view = callTensor('aten::alias', self);
  const become = (next: Tensor) => {
    view.dispose();
    view = next;
  };
  const positions: (Tensor | null)[] = [];
  let dim = 0;
  const skip = (count: number) => {
    for (let at = 0; at < count; at++) positions.push(null);
    dim += count;
  };
  for (const [at, item] of items.entries()) {
    if (typeof item === 'number') become(selected(owner, at, view, dim, item));
    else if (item === '...') skip(shape.length - taken);
    else if (item === null) {
      become(view.unsqueeze(dim));
      skip(1);
    } else if (isTensor(item)) {
      // A single boolean selects everything or nothing along a new dimension.
      if (item.ndim === 0) become(view.unsqueeze(dim));
      checkMaskSizes(owner, at, view, dim, item);
      if (item.dtype !== 'bool') checkGpuPositions(owner, view, dim, item, 'fromTheEnd');
      positions.push(item.ndim === 0 ? kept(made, item.unsqueeze(0)) : item);
      dim += item.dtype === 'bool' ? Math.max(item.ndim, 1) : 1;
    } else {
      become(sliced(view, dim, item));
      skip(1);
    }
  }
  return { view, positions: positions.some((item) => item !== null) ? positions : [], made };
}

type Item = number | '...' | SliceRange | null | Tensor;

/** Checks the types; converts arrays to tensors, strings to slices, and 0-dim integers to numbers. */
function readItems(owner: string, self: Tensor, indices: readonly Index[], made: Tensor[]): Item[] {
  if (indices.length === 0) throw new TypeError(`${owner}: pass at least one index`);
  if (indices.filter((index) => index === '...').length > 1) {
    throw new TypeError(`${owner}: '...' may occur only once`);
  }
  return indices.map((index, at) => readItem(owner, at, index, self, made));
}

function readItem(owner: string, at: number, index: Index, self: Tensor, made: Tensor[]): Item {
  const name = `indices[${at}]`;
  if (index === null || index === '...') return index;
  if (typeof index === 'number') return checkIndex(owner, name, index);
  if (typeof index === 'string') return sliceOfText(owner, name, index);
  if (isTensor(index)) return tensorItem(owner, name, index);
  if (Array.isArray(index)) {
    // A copy, because array methods skip holes, which are not valid positions.
    return kept(made, positionsOf(owner, name, Array.from<unknown>(index), self));
  }
  if (typeof index === 'object' && Object.getPrototypeOf(index) === Object.prototype) {
    return checkRange(owner, name, index as SliceRange);
  }
  throw new TypeError(
    `${owner}: ${name} must be an integer, a slice like '1:3', '...', null, a Tensor or an array, ` +
      `got ${describe(index)}`,
  );
}

function tensorItem(owner: string, name: string, index: Tensor): Item {
  const { dtype } = index;
  if (dtype !== 'int64' && dtype !== 'int32' && dtype !== 'bool') {
    throw new TypeError(`${owner}: ${name} must be int64 or bool, got ${dtype}`);
  }
  return index.ndim === 0 && dtype !== 'bool' ? index.item() : index;
}

/** `[2, 0]` as positions, `[true, false]` as a mask, on the tensor's device. */
function positionsOf(owner: string, name: string, values: readonly unknown[], self: Tensor) {
  const mask = values.length > 0 && values.every((value) => typeof value === 'boolean');
  if (!mask) values.forEach((value, at) => checkIndex(owner, `${name}[${at}]`, value));
  const data = mask
    ? Uint8Array.from(values, Number)
    : BigInt64Array.from(values as number[], BigInt);
  const made = native().fromBytes(data, [values.length], mask ? 'bool' : 'int64');
  const { device } = self;
  if (device === 'cpu') return made;
  const moved = made.to({ device });
  made.dispose();
  return moved;
}

function sliceOfText(owner: string, name: string, text: string): SliceRange {
  const match = slicePattern.exec(text);
  if (match === null) {
    throw new TypeError(
      `${owner}: ${name} must be a slice like '1:3', ':-1' or '::2', or '...', got ${describe(text)}`,
    );
  }
  const [start, end, step] = match
    .slice(1)
    .map((part) => (part === undefined ? null : Number(part)));
  return checkRange(owner, name, { start: start ?? null, end: end ?? null, step: step ?? 1 });
}

function checkRange(owner: string, name: string, range: SliceRange): SliceRange {
  for (const key of Object.keys(range)) {
    if (!['start', 'end', 'step'].includes(key)) {
      throw new TypeError(
        `${owner}: ${name} has an unknown key "${key}"; valid keys: end, start, step`,
      );
    }
  }
  const { start = null, end = null, step = 1 } = range;
  if (start !== null) checkIndex(owner, `${name}.start`, start);
  if (end !== null) checkIndex(owner, `${name}.end`, end);
  // As in PyTorch, steps cannot be negative: flip() reverses the order.
  checkInteger(owner, `${name}.step`, step, 1);
  return { start, end, step };
}

/** The number of dimensions of the tensor that an item indexes. */
function dimensionsOf(item: Item): number {
  if (item === null || item === '...') return 0;
  return isTensor(item) && item.dtype === 'bool' ? item.ndim : 1;
}

function selected(owner: string, at: number, view: Tensor, dim: number, index: number): Tensor {
  const size = sizeAt(view.shape, dim);
  if (index < -size || index >= size) {
    throw new RangeError(
      `${owner}: indices[${at}] is ${index}, which is out of range for a dimension of size ${size}`,
    );
  }
  return callTensor('aten::select.int', view, dim, index);
}

function sliced(view: Tensor, dim: number, range: SliceRange): Tensor {
  const { start = null, end = null, step = 1 } = range;
  return callTensor('aten::slice.Tensor', view, dim, start, end, step);
}

function checkMaskSizes(owner: string, at: number, view: Tensor, dim: number, item: Tensor): void {
  if (item.dtype !== 'bool') return;
  const sizes = view.shape.slice(dim, dim + item.ndim);
  if (item.ndim > 0 && sizes.join() !== item.shape.join()) {
    throw new RangeError(
      `${owner}: the mask indices[${at}] of shape ${formatShape(item.shape)} does not match ` +
        `dimensions of shape ${formatShape(sizes)}`,
    );
  }
}

function kept(made: Tensor[], tensor: Tensor): Tensor {
  made.push(tensor);
  return tensor;
}
