import type { Module } from '../nn/module/module.js';
import { isPositionTable } from '../nn/layers/positionTable.js';
import { RotaryPositions } from '../nn/layers/rotaryPositions.js';
import type { Transformer } from '../nn/model/transformer.js';
import { checkInteger } from '../runtime/arguments.js';

/** The longest source that the model's tables of positions allow; Infinity without any. */
export function sourceLimit(model: Transformer): number {
  return positionLimit(model, model.srcEmbed);
}

/** The longest target that the model's tables of positions allow; Infinity without any. */
export function targetLimit(model: Transformer): number {
  return positionLimit(model, model.tgtEmbed);
}

/**
 * The most tokens of a target: `maxLength` as given; else the length of the tables of positions,
 * or of a model without them what its settings call the longest sequence.
 *
 * @throws RangeError if it exceeds the table, or nothing is known
 */
export function checkMaxLength(owner: string, maxLength: unknown, model: Transformer): number {
  const limit = targetLimit(model);
  if (maxLength === undefined) {
    const byDefault = limit === Infinity ? (model.config?.maxLen ?? Infinity) : limit;
    if (byDefault !== Infinity) return byDefault;
    throw new RangeError(`${owner}: the model has no position table to end at; give maxLength`);
  }
  const checked = checkInteger(owner, 'maxLength', maxLength, 1);
  if (checked > limit) {
    throw new RangeError(
      `${owner}: maxLength ${checked} is more than the ${limit} positions of the model's table`,
    );
  }
  return checked;
}

/** Tables are behind the embedding, or, rotary ones, in the layers. */
function positionLimit(model: Transformer, embedding: Module): number {
  const tables = [
    ...embedding.modules().filter(isPositionTable),
    ...model.modules().filter((module) => module instanceof RotaryPositions),
  ];
  return Math.min(Infinity, ...tables.map(({ maxLen }) => maxLen));
}
