/** Tells cheaply whether a tree of modules is still what it was. */
import type { Module } from './module.js';
import { memberModules, placesBelow } from './registration.js';

/** What one module consisted of. */
interface Part {
  readonly module: Module;
  readonly prototype: unknown;
  /** That of the class, the module's own, or that of its hooks. */
  readonly forward: unknown;
  readonly names: readonly string[];
  /** Properties except those that each forward sets. */
  readonly settings: readonly (readonly [name: string, value: unknown])[];
  /** Modules that a container stores outside its properties, with their names. */
  readonly members: readonly (readonly [name: string, member: Module])[];
}

/**
 * The modules below a module with their classes, properties and hooks. A comparison with it takes a
 * small part of the time of a walk with all its checks, which takes milliseconds for a large model.
 *
 * Values are compared by identity: changed elements of a parameter, or another tensor inside the same
 * Parameter, do not change the tree. {@link Module.transientNames} are not compared.
 */
export class ModuleSnapshot {
  /** The modules of the tree, each once, parents first. */
  readonly modules: readonly Module[];
  readonly #parts: readonly Part[];

  /** @throws TypeError as {@link placesBelow} does */
  constructor(root: Module) {
    this.modules = placesBelow(root).map(({ module }) => module);
    this.#parts = this.modules.map(partOf);
  }

  /** Whether all modules have the same class, properties, members and hooks as then. */
  isCurrent(): boolean {
    return this.#parts.every(isUnchanged);
  }
}

const latest = new WeakMap<Module, ModuleSnapshot>();

/**
 * The snapshot of a tree of modules: the same object as long as the tree does not change, so that
 * results can be stored by it.
 *
 * @throws TypeError as {@link placesBelow} does
 */
export function snapshotOf(root: Module): ModuleSnapshot {
  const known = latest.get(root);
  if (known?.isCurrent() === true) return known;
  const snapshot = new ModuleSnapshot(root);
  latest.set(root, snapshot);
  return snapshot;
}

function partOf(module: Module): Part {
  const names = Object.keys(module);
  const transient = (module.constructor as typeof Module).transientNames;
  return {
    module,
    prototype: Object.getPrototypeOf(module) as unknown,
    forward: valueOf(module, 'forward'),
    names,
    settings: names
      .filter((name) => !transient.includes(name))
      .map((name) => [name, valueOf(module, name)]),
    members: [...(membersOf(module) ?? [])],
  };
}

function isUnchanged({ module, prototype, forward, names, settings, members }: Part): boolean {
  if (module.forward !== forward || Object.getPrototypeOf(module) !== prototype) return false;
  const present = Object.keys(module);
  if (present.length !== names.length) return false;
  if (!present.every((name, index) => name === names[index])) return false;
  if (!settings.every(([name, value]) => Object.is(valueOf(module, name), value))) return false;
  const now = membersOf(module);
  if (now === undefined) return members.length === 0;
  return now.size === members.length && sameMembers([...now], members);
}

function sameMembers(now: Part['members'], then: Part['members']): boolean {
  return now.every(([name, member], index) => {
    const other = then[index];
    return name === other?.[0] && member === other[1];
  });
}

function valueOf(module: Module, name: string): unknown {
  return (module as unknown as Readonly<Record<string, unknown>>)[name];
}

function membersOf(module: Module): ReadonlyMap<string, Module> | undefined {
  return (module as { [memberModules]?: ReadonlyMap<string, Module> })[memberModules];
}
