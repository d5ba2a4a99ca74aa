import { describe } from '../../runtime/arguments.js';
import { checkModuleName, pairsOf } from './containers.js';
import type { NamedModules } from './containers.js';
import { Module } from './module.js';
import { isModule, memberModules } from './registration.js';

/**
 * Modules by name, like `torch.nn.ModuleDict`, with the methods of a JavaScript Map.
 *
 * ```ts
 * const heads = new ModuleDict({ class: new Linear(8, 4), score: new Linear(8, 1) });
 * heads.get('score').forward(x); // known to be a Linear
 * ```
 *
 * Members are in insertion order. Any non-empty name without a dot is allowed, even that of a
 * method, because members are not properties: `heads.score` is undefined.
 */
export class ModuleDict<T extends Record<string, Module> = Record<string, Module>>
  extends Module
  implements Iterable<[keyof T & string, T[keyof T & string]]>
{
  // Not enumerable: members are registered through `memberModules`.
  private readonly members!: Map<string, Module>;

  /**
   * @param modules an object, or `[name, module]` pairs (an object lists integer names first)
   * @throws TypeError if a member is not a Module, or a name is empty or contains a dot
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

  /** The member with this name. @throws RangeError if there is none; lists the names that exist */
  get<K extends keyof T & string>(name: K): T[K] {
    const module = this.members.get(name);
    if (module !== undefined) return module as T[K];
    const names = [...this.members.keys()];
    throw new RangeError(
      `${this.constructor.name}: no member ${JSON.stringify(name)}; ` +
        (names.length === 0 ? 'it is empty' : `members: ${names.join(', ')}`),
    );
  }

  /** Adds a member, or replaces the one with this name in place. @throws TypeError */
  set<K extends keyof T & string>(name: K, module: T[K]): this {
    const owner = this.constructor.name;
    checkModuleName(owner, name);
    if (!isModule(module)) {
      throw new TypeError(`${owner}: member "${name}" must be a module, got ${describe(module)}`);
    }
    this.members.set(name, module);
    return this;
  }

  /** Adds or replaces several members, after checking all of them. @throws TypeError */
  update(modules: Partial<T> | Iterable<[string, T[keyof T & string]]>): this {
    const pairs = pairsOf(this.constructor.name, modules as NamedModules<Module>);
    for (const [name, module] of pairs) this.members.set(name, module);
    return this;
  }

  /** Whether there is a member with this name. */
  has(name: string): boolean {
    return this.members.has(name);
  }

  /** Removes and returns a member. @throws RangeError if there is none; lists the names that exist */
  pop<K extends keyof T & string>(name: K): T[K] {
    const module = this.get(name);
    this.members.delete(name);
    return module;
  }

  /** Removes a member. @returns whether there was one */
  delete(name: string): boolean {
    return this.members.delete(name);
  }

  /** Removes all members. */
  clear(): void {
    this.members.clear();
  }

  /** The names, in insertion order. */
  keys(): IterableIterator<keyof T & string> {
    return this.members.keys();
  }

  /** The members, in insertion order. */
  values(): IterableIterator<T[keyof T & string]> {
    return this.members.values() as IterableIterator<T[keyof T & string]>;
  }

  /** Pairs of name and member, in insertion order. */
  entries(): IterableIterator<[keyof T & string, T[keyof T & string]]> {
    return this.members.entries() as IterableIterator<[keyof T & string, T[keyof T & string]]>;
  }

  /** Same as {@link ModuleDict.entries}: `for (const [name, module] of dict)`. */
  [Symbol.iterator](): IterableIterator<[keyof T & string, T[keyof T & string]]> {
    return this.entries();
  }
}
