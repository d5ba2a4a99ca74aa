/** Common code of all position tables. */
import { callTensor } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { Module } from '../module/module.js';
import type { PackedSequences } from '../packed/packedSequences.js';

/** A module with a table of positions, which limits the length of sequences. */
export interface PositionTable {
  /** Number of positions in the table. */
  readonly maxLen: number;
  /** Extends the table to `maxLen` if it is shorter. @throws TypeError if positions are learned */
  grow(maxLen: number): unknown;
}

/** Whether a module itself has a table of positions (rather than a submodule). */
export function isPositionTable(module: Module): module is Module & PositionTable {
  const table = module as Partial<PositionTable>;
  return typeof table.grow === 'function' && typeof table.maxLen === 'number';
}

/**
 * Checks that a sequence is not longer than the table.
 *
 * @param hint another fix, besides a shorter sequence or a new model
 * @throws RangeError with both lengths
 */
export function checkPositions(owner: string, length: number, maxLen: number, hint = ''): void {
  if (length <= maxLen) return;
  throw new RangeError(
    `${owner}: the sequence has ${length} positions, but the table has ${maxLen}; ` +
      `shorten the sequence, create the model with { maxLen: ${length} }${hint}`,
  );
}

/** Rows `[tokens, dModel]` of a table `[1, maxLen, dModel]`: the position of each packed token. */
export function positionRows(table: Tensor, { positions }: PackedSequences): Tensor {
  // Not Tensor.indexSelect, which checks the positions and on a GPU waits for them.
  return callTensor('aten::index_select', table.squeeze(0), 0, positions);
}
