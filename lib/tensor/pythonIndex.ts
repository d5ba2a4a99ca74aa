/**
 * Indexing as Python's `x[…]`: a list of integers, slices, masks, positions, new dimensions.
 * Views are taken one after the other; what has to copy (masks and positions) is left for one
 * op at the end, as PyTorch does it.
 */
import { checkInteger, describe } from '../runtime/arguments.js';
import { checkIndex, formatShape, sizeAt } from './check.js';
import { callTensor, native } from './dispatch.js';
import { checkGpuPositions } from './gpuPositions.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

type Bound = '' | `${number}`;

/** `start:end` or `start:end:step` as in Python; each may be left out. */
export type SliceText = `${Bound}:${Bound}` | `${Bound}:${Bound}:${Bound}`;

/** A part of a dimension. Negative positions count from the end. */
export interface SliceRange {
  /** Default 0. */
  start?: number | null;
  /** Not included. Default: the size. */
  end?: number | null;
  /** At least 1. Default 1. */
  step?: number;
}

/**
 * One item of `x.index(…)`:
 * - an integer picks one index; the dimension disappears
 * - `':'`, `'1:'`, `':-1'`, `'::2'` or `{start, end, step}` take a part
 * - `'...'` stands for as many `':'` as are missing, once
 * - `null` puts in a new dimension of size 1
 * - an int64 tensor or an array of integers picks positions, copying; several are broadcast
 *   against each other
 * - a bool tensor or an array of booleans picks where it is true, copying; it takes as many
 *   dimensions as it has
 */
export type Index =
  number | SliceText | '...' | SliceRange | null | Tensor | readonly number[] | readonly boolean[];

/** What is left after the views: positions a dimension, null where none; [] if all were views. */
export interface IndexedView {
  /** Never the tensor itself. */
  readonly view: Tensor;
  readonly positions: readonly (Tensor | null)[];
  /** Tensors made on the way, to be given back after use. */
  readonly made: readonly Tensor[];
}

const slicePattern = /^(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?$/;

/** Applies the views among `indices`; masks and positions are returned for one op. */
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
      // A single truth value picks all or nothing along a dimension of its own.
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

/** Checks the kinds; arrays become tensors, texts slices, 0-dim integers numbers. */
function readItems(owner: string, self: Tensor, indices: readonly Index[], made: Tensor[]): Item[] {
  if (indices.length === 0) throw new TypeError(`${owner}: give at least one index`);
  if (indices.filter((index) => index === '...').length > 1) {
    throw new TypeError(`${owner}: '...' may come once`);
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
    // A copy: methods of arrays pass over holes, which are no positions.
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
  // PyTorch has no negative steps either: flip() turns the order.
  checkInteger(owner, `${name}.step`, step, 1);
  return { start, end, step };
}

/** How many dimensions of the tensor an item uses up. */
function dimensionsOf(item: Item): number {
  if (item === null || item === '...') return 0;
  return isTensor(item) && item.dtype === 'bool' ? item.ndim : 1;
}

function selected(owner: string, at: number, view: Tensor, dim: number, index: number): Tensor {
  const size = sizeAt(view.shape, dim);
  if (index < -size || index >= size) {
    throw new RangeError(
      `${owner}: indices[${at}] is ${index}, outside its dimension, which has size ${size}`,
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
      `${owner}: the mask indices[${at}] of shape ${formatShape(item.shape)} stands for ` +
        `dimensions of shape ${formatShape(sizes)}`,
    );
  }
}

function kept(made: Tensor[], tensor: Tensor): Tensor {
  made.push(tensor);
  return tensor;
}
