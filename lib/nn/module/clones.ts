import { checkInteger, describe } from '../../runtime/arguments.js';
import { ModuleList } from './containers.js';
import type { Module } from './module.js';
import { isModule } from './registration.js';

/**
 * `count` deep copies of a module. Equal values, but no memory shared: neither with the original
 * nor with each other.
 *
 * @throws TypeError, RangeError for anything but a module and a count of at least 0
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
 * As {@link clones}, but the original becomes the first member: for parts made only to be cloned,
 * whose memory would otherwise wait for the garbage collector.
 * @internal
 */
export function intoClones<M extends Module>(module: M, count: number): ModuleList<M> {
  checkInteger('clones', 'count', count, 1);
  return new ModuleList([module, ...clones(module, count - 1)]);
}
