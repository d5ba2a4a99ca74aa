/** What all tables of positions have in common. */
import { callTensor } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { Module } from '../module/module.js';
import type { PackedSequences } from '../packed/packedSequences.js';

/** A module with a table of positions, which no sequence may exceed. */
export interface PositionTable {
  /** Number of positions in the table. */
  readonly maxLen: number;
  /** Makes a shorter table as long as asked. @throws TypeError where positions are learned */
  grow(maxLen: number): unknown;
}

/** Whether a module holds a table of positions itself (not only in a submodule). */
export function isPositionTable(module: Module): module is Module & PositionTable {
  const table = module as Partial<PositionTable>;
  return typeof table.grow === 'function' && typeof table.maxLen === 'number';
}

/**
 * Refuses a sequence that is longer than the table.
 *
 * @param wayOut what the user can do besides shortening it and making another model
 * @throws RangeError naming both lengths
 */
export function checkPositions(owner: string, length: number, maxLen: number, wayOut = ''): void {
  if (length <= maxLen) return;
  throw new RangeError(
    `${owner}: the sequence has ${length} positions, the table ${maxLen}; ` +
      `shorten the sequence, make the model with { maxLen: ${length} }${wayOut}`,
  );
}

/** Rows `[tokens, dModel]` of a table `[1, maxLen, dModel]`: the position of each packed token. */
export function positionRows(table: Tensor, { positions }: PackedSequences): Tensor {
  // Not the method: the positions are our own, and on a GPU it waits to look at them.
  return callTensor('aten::index_select', table.squeeze(0), 0, positions);
}
