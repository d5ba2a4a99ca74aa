/** Functions that combine several tensors. */
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
 * Concatenates tensors along an existing dimension; all other sizes must be equal.
 *
 * @throws TypeError if `tensors` is not an array of tensors; RangeError if it is empty, the
 *   dimension does not exist, or other sizes differ
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
 * Stacks tensors of equal shape along a new dimension `dim`.
 *
 * @throws TypeError if `tensors` is not an array of tensors; RangeError if it is empty, the
 *   dimension is out of range, or shapes differ
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

/** @throws RangeError unless all shapes are equal, ignoring the size of dimension `except` */
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
            ? '; all must be equal'
            : `; all sizes except that of dimension ${except} must be equal`),
      );
    }
  });
}

/** Concatenates along dimension 1, or along 0 for vectors. */
export function hstack(tensors: readonly Tensor[]): Tensor {
  const parts = checkTensors('hstack', 'tensors', tensors);
  return explained(
    () => callTensor('aten::hstack', parts),
    () => checkSameSizes('hstack', parts, (parts[0] as Tensor).ndim > 1 ? 1 : 0),
  );
}

/** Concatenates along dimension 0, with vectors as rows. */
export function vstack(tensors: readonly Tensor[]): Tensor {
  const parts = checkTensors('vstack', 'tensors', tensors);
  return explained(
    () => callTensor('aten::vstack', parts),
    () => checkSameSizes('vstack', parts, (parts[0] as Tensor).ndim > 1 ? 0 : -1),
  );
}

/** Coordinates of a grid: N vectors `[A]`, `[B]`, … → N tensors `[A, B, …]`. */
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

/** Broadcasts all tensors to their common shape, without copying. */
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
