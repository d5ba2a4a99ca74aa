import type { Module } from '../nn/module.js';
import { PositionalEncoding } from '../nn/positionalEncoding.js';
import { checkInteger } from '../runtime/options.js';

/** The longest sequence that the position tables in a module allow; Infinity without any. */
export function positionLimit(embedding: Module): number {
  const tables = embedding.modules().filter((module) => module instanceof PositionalEncoding);
  return Math.min(Infinity, ...tables.map(({ maxLen }) => maxLen));
}

/**
 * The most tokens of a target: `maxLength` as given, or the length of the position table.
 *
 * @throws RangeError if it exceeds the table, or neither exists
 */
export function checkMaxLength(owner: string, maxLength: unknown, embedding: Module): number {
  const limit = positionLimit(embedding);
  if (maxLength === undefined) {
    if (limit !== Infinity) return limit;
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
