import { describe } from '../../runtime/arguments.js';
import type { Module } from './module.js';
import { registeredIn } from './registration.js';
import type { Registered } from './registration.js';

/** A class of modules, for `getSubmodule(path, Linear)`. */
export type ModuleClass<M extends Module> = abstract new (...inputs: never[]) => M;

/** Splits a dotted path into names; `''` has none. @throws TypeError */
export function splitPath(owner: string, path: unknown): string[] {
  if (typeof path !== 'string') {
    throw new TypeError(`${owner}: path must be a string, got ${describe(path)}`);
  }
  return path === '' ? [] : path.split('.');
}

const kinds = { parameters: 'parameter', buffers: 'buffer', children: 'submodule' } as const;

/**
 * The value that `module` has registered under a state name, or else under a property.
 * @throws RangeError if there is none; the message lists the names that exist
 */
export function childAt<K extends keyof Registered>(
  owner: string,
  root: Module,
  path: string,
  module: Module,
  kind: K,
  name: string,
): Registered[K][number]['value'] {
  const entries: Registered[K][number][] = registeredIn(module)[kind];
  const entry =
    entries.find((candidate) => candidate.name === name) ??
    entries.find((candidate) => candidate.property === name);
  if (entry !== undefined) return entry.value;
  const names = entries.map((candidate) => candidate.name);
  throw new RangeError(
    `${owner}: ${root.constructor.name} has nothing at "${path}": its ${module.constructor.name} ` +
      `has no ${kinds[kind]} "${name}"${names.length > 0 ? `, only ${names.join(', ')}` : ''}`,
  );
}
