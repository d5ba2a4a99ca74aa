import { describe } from '../../runtime/arguments.js';
import { checkModuleName, pairsOf } from './containers.js';
import type { NamedModules } from './containers.js';
import { Module } from './module.js';
import { isModule, memberModules } from './registration.js';

/**
 * Modules under names, as `torch.nn.ModuleDict`, with the methods of a JavaScript Map.
 *
 * ```ts
 * const heads = new ModuleDict({ class: new Linear(8, 4), score: new Linear(8, 1) });
 * heads.get('score').forward(x); // known to be a Linear
 * ```
 *
 * Members are in the order in which they came. Any name without a dot will do, those of methods
 * too, because members are no properties: `heads.score` is undefined.
 */
export class ModuleDict<T extends Record<string, Module> = Record<string, Module>>
  extends Module
  implements Iterable<[keyof T & string, T[keyof T & string]]>
{
  // Not enumerable: members are registered through `memberModules`.
  private readonly members!: Map<string, Module>;

  /**
   * @param modules an object, or pairs of name and module (an object puts numbers first)
   * @throws TypeError for anything but modules, and for names with a dot or without a letter
   */
  constructor(modules: T | Iterable<[string, T[keyof T & string]]> = {} as T) {
    super();
    Object.defineProperty(this, 'members', { value: new Map<string, Module>() });
    this.update(modules);
  }

  /** @internal */
  get [memberModules](): ReadonlyMap<string, Module> {
    return this.members;
  }

  /** Number of members. */
  get size(): number {
    return this.members.size;
  }

  /** The member of that name. @throws RangeError naming those there are */
  get<K extends keyof T & string>(name: K): T[K] {
    const module = this.members.get(name);
    if (module !== undefined) return module as T[K];
    const names = [...this.members.keys()];
    throw new RangeError(
      `${this.constructor.name}: no member ${JSON.stringify(name)}; ` +
        (names.length === 0 ? 'it is empty' : `members: ${names.join(', ')}`),
    );
  }

  /** Adds a member, or replaces the one of that name in its place. @throws TypeError */
  set<K extends keyof T & string>(name: K, module: T[K]): this {
    const owner = this.constructor.name;
    checkModuleName(owner, name);
    if (!isModule(module)) {
      throw new TypeError(`${owner}: member "${name}" must be a module, got ${describe(module)}`);
    }
    this.members.set(name, module);
    return this;
  }

  /** Adds or replaces several members; all are checked before the first. @throws TypeError */
  update(modules: Partial<T> | Iterable<[string, T[keyof T & string]]>): this {
    const pairs = pairsOf(this.constructor.name, modules as NamedModules<Module>);
    for (const [name, module] of pairs) this.members.set(name, module);
    return this;
  }

  /** Whether there is a member of that name. */
  has(name: string): boolean {
    return this.members.has(name);
  }

  /** Takes out a member and returns it. @throws RangeError naming those there are */
  pop<K extends keyof T & string>(name: K): T[K] {
    const module = this.get(name);
    this.members.delete(name);
    return module;
  }

  /** Takes out a member; tells whether there was one. */
  delete(name: string): boolean {
    return this.members.delete(name);
  }

  /** Takes out all members. */
  clear(): void {
    this.members.clear();
  }

  /** The names, in the order in which the members came. */
  keys(): IterableIterator<keyof T & string> {
    return this.members.keys();
  }

  /** The members, in the order in which they came. */
  values(): IterableIterator<T[keyof T & string]> {
    return this.members.values() as IterableIterator<T[keyof T & string]>;
  }

  /** Pairs of name and member, in the order in which they came. */
  entries(): IterableIterator<[keyof T & string, T[keyof T & string]]> {
    return this.members.entries() as IterableIterator<[keyof T & string, T[keyof T & string]]>;
  }

  /** As {@link ModuleDict.entries}: `for (const [name, module] of dict)`. */
  [Symbol.iterator](): IterableIterator<[keyof T & string, T[keyof T & string]]> {
    return this.entries();
  }
}
