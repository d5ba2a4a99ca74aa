/**
 * What a module has registered. Nothing is recorded at assignment: the own properties are looked
 * through whenever asked, so class fields, constructor assignments and later changes all count,
 * with `useDefineForClassFields` on or off.
 */
import { Buffer, Parameter } from './parameter.js';
import type { Module } from './module.js';

/** Marks modules, so that files which {@link Module} itself needs can tell them. @internal */
export const moduleBrand = Symbol('torchformer.Module');

/** @internal */
export function isModule(value: unknown): value is Module {
  return typeof value === 'object' && value !== null && moduleBrand in value;
}

/**
 * Key of the modules that a container holds elsewhere than in its properties: a map from names in
 * state dicts to modules. They come after those in properties. @internal
 */
export const memberModules = Symbol('torchformer.memberModules');

/** One registered thing: under which property, and under which name in state dicts. */
export interface Entry<T> {
  readonly property: string;
  readonly name: string;
  readonly value: T;
}

/** The parameters, buffers and children of one module, in the order of its properties. */
export interface Registered {
  readonly parameters: Entry<Parameter>[];
  readonly buffers: Entry<Buffer>[];
  readonly children: Entry<Module>[];
}

/**
 * @throws TypeError when two properties share a state name, a name holds a dot, or an array, map,
 *   set or plain object hides modules or parameters
 */
export function registeredIn(module: Module): Registered {
  const registered: Registered = { parameters: [], buffers: [], children: [] };
  const names = new Map<string, string>();
  const add = <T extends object>(list: Entry<T>[], entry: Entry<T>) => {
    checkName(module, entry, names.get(entry.name));
    names.set(entry.name, entry.property);
    list.push(entry);
  };
  for (const property of Object.keys(module)) {
    // Data properties only: to read a getter might run anything.
    const value: unknown = Object.getOwnPropertyDescriptor(module, property)?.value;
    if (typeof value !== 'object' || value === null) continue;
    const list =
      value instanceof Parameter
        ? registered.parameters
        : value instanceof Buffer
          ? registered.buffers
          : isModule(value)
            ? registered.children
            : undefined;
    if (list === undefined) {
      refuseHidden(module, property, value);
      continue;
    }
    add<object>(list, { property, name: module.stateNameOf(property), value });
  }
  const members = (module as { [memberModules]?: ReadonlyMap<string, Module> })[memberModules];
  for (const [name, value] of members ?? []) {
    add(registered.children, { property: name, name, value });
  }
  return registered;
}

function checkName(
  module: Module,
  { property, name }: Entry<object>,
  other: string | undefined,
): void {
  const owner = module.constructor.name;
  if (other !== undefined) {
    throw new TypeError(
      `${owner}: properties "${other}" and "${property}" share the state name "${name}"`,
    );
  }
  if (name.includes('.')) {
    throw new TypeError(
      `${owner}: the state name "${name}" of property "${property}" must not hold a dot`,
    );
  }
}

/** Plain collections are not looked into: what is in them would be neither trained nor saved. */
function refuseHidden(module: Module, property: string, value: object): void {
  const [kind, values] = contents(value);
  for (const item of values) {
    if (!isModule(item) && !(item instanceof Parameter)) continue;
    const list = kind === 'an array' || kind === 'a Set' ? 'ModuleList' : 'ModuleDict';
    throw new TypeError(
      `${module.constructor.name}: property "${property}" is ${kind} with a ` +
        `${item.constructor.name} in it, which would be neither trained nor saved; ` +
        `use a ${list} (to keep it out on purpose, make the property non-enumerable)`,
    );
  }
}

function contents(value: object): [kind: string, values: Iterable<unknown>] {
  if (Array.isArray(value)) return ['an array', value];
  if (value instanceof Map) return ['a Map', value.values()];
  if (value instanceof Set) return ['a Set', value];
  const prototype: unknown = Object.getPrototypeOf(value);
  const plain = prototype === Object.prototype || prototype === null;
  return ['an object', plain ? Object.values(value) : []];
}

/** One place of a module below another. */
export interface Place {
  /** dotted, in state names; the root's own is the prefix */
  readonly name: string;
  readonly module: Module;
  readonly registered: Registered;
}

/**
 * `root` and every module below it with what each has registered, parents first: the order of
 * keys in PyTorch's state dicts.
 *
 * @param removeDuplicate a module in several places comes once, in its first place
 * @throws TypeError for a module inside itself
 */
export function placesBelow(
  root: Module,
  { prefix = '', removeDuplicate = true }: { prefix?: string; removeDuplicate?: boolean } = {},
): Place[] {
  const places: Place[] = [];
  const seen = new Set<Module>();
  const above = new Map<Module, string>();
  const visit = (module: Module, name: string) => {
    const outer = above.get(module);
    if (outer !== undefined) {
      throw new TypeError(
        `${root.constructor.name}: "${name}" is the ${module.constructor.name} that it is inside ` +
          `of (${outer === '' ? 'the root' : `"${outer}"`}); modules must not form a cycle ` +
          '(a reference upwards belongs in a non-enumerable property)',
      );
    }
    if (removeDuplicate && seen.has(module)) return;
    seen.add(module);
    above.set(module, name);
    const registered = registeredIn(module);
    places.push({ name, module, registered });
    for (const child of registered.children) visit(child.value, joinedName(name, child.name));
    above.delete(module);
  };
  visit(root, prefix);
  return places;
}

/** `prefix.name`, or `name` without a prefix. */
export function joinedName(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}.${name}`;
}

const mergedNames = new WeakMap<object, ReadonlyMap<string, string>>();

/** `static stateNames` of the class and all classes it extends; the nearer class wins. */
export function mergedStateNames(constructor: unknown): ReadonlyMap<string, string> {
  const known = mergedNames.get(constructor as object);
  if (known !== undefined) return known;
  const base: unknown = Object.getPrototypeOf(constructor);
  const merged = new Map(typeof base === 'function' ? mergedStateNames(base) : []);
  if (Object.hasOwn(constructor as object, 'stateNames')) {
    const own = (constructor as { stateNames: Readonly<Record<string, string>> }).stateNames;
    for (const [property, name] of Object.entries(own)) merged.set(property, name);
  }
  mergedNames.set(constructor as object, merged);
  return merged;
}
