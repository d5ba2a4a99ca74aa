/** Functions that put several tensors together. */
import { checkChoice, checkOptions } from '../runtime/arguments.js';
import {
  checkBroadcast,
  checkDimRange,
  checkIndex,
  checkTensors,
  explained,
  formatShape,
} from './check.js';
import { callTensor, callTensors } from './dispatch.js';
import type { Tensor } from './tensor.js';

/** Options of {@link meshgrid}. */
export interface MeshgridOptions {
  /** `'ij'` (default): the first tensor runs along the first dimension; `'xy'`: along the second. */
  indexing?: 'ij' | 'xy';
}

/**
 * Joins tensors along an existing dimension; all other sizes must agree.
 *
 * @throws TypeError for anything but a list of tensors, RangeError for an empty list, a dimension
 *   that they do not have, or sizes that differ
 */
export function cat(tensors: readonly Tensor[], dim = 0): Tensor {
  const parts = checkTensors('cat', 'tensors', tensors);
  checkIndex('cat', 'dim', dim);
  return explained(
    () => callTensor('aten::cat', parts, dim),
    () => {
      const first = (parts[0] as Tensor).shape;
      checkDimRange('cat', 'dim', dim, first.length);
      const axis = dim < 0 ? dim + first.length : dim;
      checkSameSizes('cat', parts, axis);
    },
  );
}

/**
 * Joins tensors of one shape along a new dimension `dim`.
 *
 * @throws TypeError for anything but a list of tensors, RangeError for an empty list, a dimension
 *   out of range, or shapes that differ
 */
export function stack(tensors: readonly Tensor[], dim = 0): Tensor {
  const parts = checkTensors('stack', 'tensors', tensors);
  checkIndex('stack', 'dim', dim);
  return explained(
    () => callTensor('aten::stack', parts, dim),
    () => {
      checkDimRange('stack', 'dim', dim, (parts[0] as Tensor).ndim + 1);
      checkSameSizes('stack', parts, -1);
    },
  );
}

/** @throws RangeError unless all shapes agree, but for the size of dimension `except` */
function checkSameSizes(owner: string, parts: readonly Tensor[], except: number): void {
  const first = (parts[0] as Tensor).shape;
  parts.forEach((part, at) => {
    const { shape } = part;
    const agree =
      shape.length === first.length &&
      shape.every((size, dim) => dim === except || size === first[dim]);
    if (!agree) {
      throw new RangeError(
        `${owner}: tensors[${at}] has shape ${formatShape(shape)}, tensors[0] ${formatShape(first)}` +
          (except < 0
            ? '; all must agree'
            : `; all sizes but that of dimension ${except} must agree`),
      );
    }
  });
}

/** Joins side by side: along dimension 1, vectors along 0. */
export function hstack(tensors: readonly Tensor[]): Tensor {
  const parts = checkTensors('hstack', 'tensors', tensors);
  return explained(
    () => callTensor('aten::hstack', parts),
    () => checkSameSizes('hstack', parts, (parts[0] as Tensor).ndim > 1 ? 1 : 0),
  );
}

/** Joins one above the other: along dimension 0, with vectors as rows. */
export function vstack(tensors: readonly Tensor[]): Tensor {
  const parts = checkTensors('vstack', 'tensors', tensors);
  return explained(
    () => callTensor('aten::vstack', parts),
    () => checkSameSizes('vstack', parts, (parts[0] as Tensor).ndim > 1 ? 0 : -1),
  );
}

/** Coordinates of a grid: vectors `[A]`, `[B]`, … → as many tensors `[A, B, …]`. */
export function meshgrid(tensors: readonly Tensor[], options: MeshgridOptions = {}): Tensor[] {
  const parts = checkTensors('meshgrid', 'tensors', tensors);
  checkOptions('meshgrid', options, ['indexing']);
  const { indexing = 'ij' } = options;
  checkChoice('meshgrid', 'indexing', indexing, ['ij', 'xy']);
  return explained(
    () => callTensors('aten::meshgrid.indexing', parts, { indexing }),
    () =>
      parts.forEach((part, at) => {
        if (part.ndim > 1) {
          throw new RangeError(
            `meshgrid: tensors[${at}] must be a vector [N], got ${formatShape(part.shape)}`,
          );
        }
      }),
  );
}

/** All tensors broadcast to their common shape, without copying. */
export function broadcastTensors(...tensors: Tensor[]): Tensor[] {
  const parts = checkTensors('broadcastTensors', 'tensors', tensors);
  return explained(
    () => callTensors('aten::broadcast_tensors', parts),
    () => {
      for (const [a, left] of parts.entries()) {
        for (const [b, right] of parts.entries()) {
          const names = [`tensors[${a}]`, `tensors[${b}]`] as const;
          checkBroadcast('broadcastTensors', names, left.shape, right.shape);
        }
      }
    },
  );
}
