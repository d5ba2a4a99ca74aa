import { checkInteger, checkNumber, describe } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';
import { describeModule } from './describeModule.js';
import { Module } from './module.js';
import type { TensorModule } from './module.js';
import { checkMembers, isModule } from './registration.js';

/**
 * A list of modules registered under their positions, like `torch.nn.ModuleList`.
 * `list[0]`, `list.at(-1)`, `list.slice(2)`, `for (const module of list)`.
 *
 * Replace a member with {@link ModuleList.set} or `list[0] = …`, add one with
 * {@link ModuleList.append} and remove one with {@link ModuleList.pop}. `list[list.length] = …` and
 * `delete list[0]` leave uncounted members or holes: `parameters()`, `stateDict()` and every other
 * method that walks the list then throws.
 */
export class ModuleList<M extends Module = Module> extends Module implements Iterable<M> {
  static override readonly takesPackedRows: boolean = true;

  // The members are own properties '0', '1', …: JavaScript keeps such keys in numeric order.
  [index: number]: M;
  /** The value of `length`: the members are the properties '0' to 'count - 1'. */
  private count = 0;

  /** @throws TypeError if a member is not a Module */
  constructor(modules: Iterable<M> = []) {
    super();
    this.extend(modules);
  }

  /** Number of members. Setting a lower value removes members from the end, as for arrays. */
  get length(): number {
    return this.count;
  }

  /** @throws TypeError if not an integer; RangeError if larger than the current length */
  set length(length: number) {
    checkInteger(this.constructor.name, 'length', length, 0, this.count);
    while (this.count > length) this.pop();
  }

  /** @internal */
  [checkMembers](): void {
    const places = Object.keys(this).filter((key) => /^-?\d/.test(key));
    const name = this.constructor.name;
    const uncounted = places.find((key) => !/^\d+$/.test(key) || Number(key) >= this.count);
    if (uncounted !== undefined) {
      throw new TypeError(
        `${name}: there is a member at [${uncounted}], but the length is ${this.count}; ` +
          'add members with append()',
      );
    }
    if (places.length < this.count) {
      throw new TypeError(`${name}: members were removed with delete; use pop(index)`);
    }
    for (const key of places) checkMember(this, this[Number(key)]);
  }

  /** Appends a member. @throws TypeError if `module` is not a Module */
  append(module: M): this {
    return this.insert(this.length, module);
  }

  /** Appends members. @throws TypeError if one is not a Module */
  push(...modules: M[]): this {
    return this.extend(modules);
  }

  /** Appends all members of a list or other iterable. @throws TypeError if one is not a Module */
  extend(modules: Iterable<M>): this {
    const members = asIterable(this, modules);
    for (const module of members) checkMember(this, module);
    for (const module of members) this[this.count++] = module;
    return this;
  }

  /**
   * Inserts a member before position `index`, counted from the end if negative.
   *
   * @throws TypeError if `module` is not a Module; RangeError if `index` is out of range
   */
  insert(index: number, module: M): this {
    checkMember(this, module);
    const place = checkedIndex(this, index, this.length);
    for (let later = this.length; later > place; later--) this[later] = this.at(later - 1);
    this[place] = module;
    this.count++;
    return this;
  }

  /** Replaces the member at `index`, counted from the end if negative. @throws RangeError */
  set(index: number, module: M): this {
    checkMember(this, module);
    this[checkedIndex(this, index, this.length - 1)] = module;
    return this;
  }

  /** Removes and returns a member, by default the last. @throws RangeError */
  pop(index = -1): M {
    const place = checkedIndex(this, index, this.length - 1);
    const module = this.at(place);
    for (let later = place + 1; later < this.length; later++) this[later - 1] = this.at(later);
    delete this[--this.count];
    return module;
  }

  /** The member at `index`, counted from the end if negative. @throws RangeError */
  at(index: number): M {
    return this[checkedIndex(this, index, this.length - 1)] as M;
  }

  /** A new list of the same modules from `start` up to but excluding `end`, as for arrays. */
  slice(start?: number, end?: number): ModuleList<M> {
    checkRange(this, start, end);
    return new ModuleList([...this].slice(start, end));
  }

  /** Iterates over the members in order. */
  *[Symbol.iterator](): Iterator<M> {
    for (let index = 0; index < this.length; index++) yield this.at(index);
  }

  override toString(): string {
    return describeModule(this, '', { fold: true });
  }
}

/** Modules by name. An object lists integer names first; pairs keep their order. */
export type NamedModules<M extends Module> = Readonly<Record<string, M>> | Iterable<[string, M]>;

/**
 * Passes each module's output to the next module, like `torch.nn.Sequential`.
 *
 * ```ts
 * new Sequential(new Linear(8, 16), new Linear(16, 2)); // keys 0.weight, 0.bias, 1.weight, …
 * new Sequential({ hidden: new Linear(8, 16), out: new Linear(16, 2) }); // hidden.weight, …
 * ```
 */
export class Sequential extends ModuleList<TensorModule> {
  static override readonly takesPackedRows: boolean = true;

  /** Names in state dicts; null: the positions. */
  private memberNames: string[] | null;

  /** @throws TypeError if a member is not a Module, or a name is empty or contains a dot */
  constructor(...modules: TensorModule[]);
  constructor(modules: NamedModules<TensorModule>);
  constructor(...given: TensorModule[] | [NamedModules<TensorModule>]) {
    const [first] = given;
    const named = given.length === 1 && typeof first === 'object' && !isModule(first);
    const pairs = named ? pairsOf('Sequential', first) : null;
    super(pairs === null ? (given as TensorModule[]) : pairs.map(([, module]) => module));
    this.memberNames = pairs?.map(([name]) => name) ?? null;
  }

  /**
   * @param input the input of the first module
   * @returns the output of the last module; the input itself if there are no modules
   */
  override forward(input: Tensor): Tensor {
    let output = input;
    for (const module of this) output = module.forward(output);
    return output;
  }

  /** As for lists; if members have names, the new name is the smallest unused number. */
  override insert(index: number, module: TensorModule): this {
    const place = checkedIndex(this, index, this.length);
    super.insert(index, module);
    this.memberNames?.splice(place, 0, freeName(this.memberNames));
    return this;
  }

  override extend(modules: Iterable<TensorModule>): this {
    super.extend(modules);
    while (this.memberNames && this.memberNames.length < this.length)
      this.memberNames.push(freeName(this.memberNames));
    return this;
  }

  override pop(index = -1): TensorModule {
    const place = checkedIndex(this, index, this.length - 1);
    this.memberNames?.splice(place, 1);
    return super.pop(place);
  }

  /** The modules from `start` up to but excluding `end`; they keep their names, as in PyTorch. */
  override slice(start?: number, end?: number): Sequential {
    checkRange(this, start, end);
    const names = this.memberNames ?? Array.from(this, (_, index) => String(index));
    const part = new Sequential(...[...this].slice(start, end));
    const kept = names.slice(start, end);
    if (kept.some((name, index) => name !== String(index))) part.memberNames = kept;
    return part;
  }

  override stateNameOf(property: string): string {
    const name = /^\d+$/.test(property) ? this.memberNames?.[Number(property)] : undefined;
    return name ?? super.stateNameOf(property);
  }

  override toString(): string {
    return describeModule(this, this.extraDescription(), { fold: false });
  }
}

function freeName(names: readonly string[]): string {
  let number = 0;
  while (names.includes(String(number))) number++;
  return String(number);
}

/** @throws TypeError unless all members are modules with valid names */
export function pairsOf<M extends Module>(owner: string, modules: NamedModules<M>): [string, M][] {
  if (typeof modules !== 'object' || modules === null) {
    throw new TypeError(`${owner}: modules must be an object or pairs, got ${describe(modules)}`);
  }
  const pairs: unknown[] =
    Symbol.iterator in modules
      ? [...(modules as Iterable<[string, M]>)]
      : Object.entries(modules as Record<string, M>);
  const names = new Set<string>();
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) {
      const hint = isModule(pair) ? `; for an array, write new ${owner}(...modules)` : '';
      throw new TypeError(
        `${owner}: members must be [name, module] pairs, got ${describe(pair)}${hint}`,
      );
    }
    const [name, module] = pair as [unknown, unknown];
    checkModuleName(owner, name);
    if (names.has(name)) throw new TypeError(`${owner}: duplicate name "${name}"`);
    names.add(name);
    if (!isModule(module)) {
      throw new TypeError(`${owner}: member "${name}" must be a module, got ${describe(module)}`);
    }
  }
  return pairs as [string, M][];
}

/** @throws TypeError unless `name` can be part of a key in a state dict */
export function checkModuleName(owner: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '' || name.includes('.')) {
    throw new TypeError(
      `${owner}: names must be non-empty strings without a dot, got ${describe(name)}`,
    );
  }
}

function asIterable<M>(list: Module, modules: Iterable<M>): M[] {
  const given: unknown = modules;
  if (typeof given === 'object' && given !== null && Symbol.iterator in given) return [...modules];
  throw new TypeError(
    `${list.constructor.name}: modules must be an array or other iterable, got ${describe(given)}`,
  );
}

/** @throws TypeError unless both are numbers or undefined */
function checkRange(list: Module, start: unknown, end: unknown): void {
  for (const [name, value] of [
    ['start', start],
    ['end', end],
  ] as const) {
    if (value !== undefined) checkNumber(list.constructor.name, name, value);
  }
}

function checkMember(list: Module, module: unknown): void {
  if (isModule(module)) return;
  throw new TypeError(`${list.constructor.name}: members must be modules, got ${describe(module)}`);
}

/** The position counted from the start. @param last the largest allowed */
function checkedIndex(list: Module & { length: number }, index: number, last: number): number {
  if (typeof index !== 'number') {
    throw new TypeError(
      `${list.constructor.name}: index must be an integer, got ${describe(index)}`,
    );
  }
  const position = index < 0 ? list.length + index : index;
  if (Number.isInteger(position) && position >= 0 && position <= last) return position;
  throw new RangeError(
    `${list.constructor.name}: index must be from ${-list.length} to ${last}, got ${index}`,
  );
}
