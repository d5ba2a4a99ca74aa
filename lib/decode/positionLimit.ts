import type { Module } from '../nn/module/module.js';
import { snapshotOf, type ModuleSnapshot } from '../nn/module/moduleSnapshot.js';
import { isPositionTable, type PositionTable } from '../nn/layers/positionTable.js';
import { RotaryPositions } from '../nn/layers/rotaryPositions.js';
import type { Transformer } from '../nn/model/transformer.js';
import { checkInteger } from '../runtime/arguments.js';

/** The maximum source length of the model's position tables; Infinity if it has none. */
export function sourceLimit(model: Transformer): number {
  return positionLimit(model, model.srcEmbed);
}

/** The maximum target length of the model's position tables; Infinity if it has none. */
export function targetLimit(model: Transformer): number {
  return positionLimit(model, model.tgtEmbed);
}

/**
 * The maximum number of tokens of a target: `maxLength` if given; otherwise the length of the position
 * tables, or `maxLen` in the settings of a model without them.
 *
 * @throws RangeError if it exceeds the table, or if there is no default
 */
export function checkMaxLength(owner: string, maxLength: unknown, model: Transformer): number {
  const limit = targetLimit(model);
  if (maxLength === undefined) {
    const byDefault = limit === Infinity ? (model.config?.maxLen ?? Infinity) : limit;
    if (byDefault !== Infinity) return byDefault;
    throw new RangeError(
      `${owner}: the model has no position table to limit the output; pass maxLength`,
    );
  }
  const checked = checkInteger(owner, 'maxLength', maxLength, 1);
  if (checked > limit) {
    throw new RangeError(
      `${owner}: maxLength ${checked} exceeds the ${limit} positions of the model's table`,
    );
  }
  return checked;
}

function positionLimit(model: Transformer, embedding: Module): number {
  return Math.min(Infinity, ...tablesOf(model, embedding).map(({ maxLen }) => maxLen));
}

/** The tables that limit what goes through an embedding. */
const knownTables = new WeakMap<ModuleSnapshot, Map<Module, readonly PositionTable[]>>();

/** Tables are in the embedding, or, for rotary positions, in the layers. */
function tablesOf(model: Transformer, embedding: Module): readonly PositionTable[] {
  const snapshot = snapshotOf(model);
  const byEmbedding = knownTables.get(snapshot) ?? new Map<Module, readonly PositionTable[]>();
  knownTables.set(snapshot, byEmbedding);
  const known = byEmbedding.get(embedding);
  if (known !== undefined) return known;
  const tables = [
    ...embedding.modules().filter(isPositionTable),
    ...snapshot.modules.filter((module) => module instanceof RotaryPositions),
  ];
  byEmbedding.set(embedding, tables);
  return tables;
}
