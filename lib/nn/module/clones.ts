import { checkInteger, describe } from '../../runtime/arguments.js';
import { ModuleList } from './containers.js';
import type { Module } from './module.js';
import { isModule } from './registration.js';

/**
 * Returns `count` deep copies of a module. The values are equal, but no memory is shared, neither
 * with the original nor between the copies.
 *
 * @throws TypeError if `module` is not a Module or `count` is not an integer
 * @throws RangeError if `count` is negative
 */
export function clones<M extends Module>(module: M, count: number): ModuleList<M> {
  if (!isModule(module)) {
    throw new TypeError(`clones: module must be a Module, got ${describe(module)}`);
  }
  checkInteger('clones', 'count', count, 0);
  return new ModuleList(Array.from({ length: count }, () => module.clone()));
}

/** {@link clones} under the name that seed 000 uses. */
export const clone = clones;

/**
 * Like {@link clones}, but the original becomes the first member. For modules created only to be
 * cloned, whose memory would otherwise stay allocated until garbage collection.
 * @internal
 */
export function intoClones<M extends Module>(module: M, count: number): ModuleList<M> {
  checkInteger('clones', 'count', count, 1);
  return new ModuleList([module, ...clones(module, count - 1)]);
}
