/**
 * Finds what a module has registered. Nothing is recorded at assignment; instead, the own
 * properties are inspected at each call, so class fields, constructor assignments and later changes
 * all count, with `useDefineForClassFields` on or off. The result is remembered, so that replacing a
 * parameter, buffer or module with something else is an error at the next call rather than a
 * parameter that silently disappears.
 */
import { describe } from '../../runtime/arguments.js';
import { Buffer, Parameter } from './parameter.js';
import type { Module } from './module.js';

/** Identifies modules, for files that {@link Module} itself imports. @internal */
export const moduleBrand = Symbol('torchformer.Module');

/** @internal */
export function isModule(value: unknown): value is Module {
  return typeof value === 'object' && value !== null && moduleBrand in value;
}

/**
 * Key of the modules that a container stores outside its properties: a map from names in state
 * dicts to modules. They are listed after those in properties. @internal
 */
export const memberModules = Symbol('torchformer.memberModules');

/** A registered value, with its property and its name in state dicts. */
export interface Entry<T> {
  readonly property: string;
  readonly name: string;
  readonly value: T;
}

/** The parameters, buffers and children of one module, in property order. */
export interface Registered {
  readonly parameters: Entry<Parameter>[];
  readonly buffers: Entry<Buffer>[];
  readonly children: Entry<Module>[];
}

/** Key of the method with which a container rejects members it does not count. @internal */
export const checkMembers = Symbol('torchformer.checkMembers');

type Kind = keyof Registered;

/** What each property of a module was registered as at the last call. */
const remembered = new WeakMap<Module, Map<string, Kind>>();

function kindOf(value: object): Kind | undefined {
  if (value instanceof Parameter) return 'parameters';
  if (value instanceof Buffer) return 'buffers';
  return isModule(value) ? 'children' : undefined;
}

/**
 * Remembers what is registered now; called at the end of a constructor. Otherwise, replacing a
 * parameter with a plain tensor before the first call would go unnoticed.
 */
export function rememberRegistered(module: Module): void {
  for (const property of Object.keys(module)) {
    const value: unknown = Object.getOwnPropertyDescriptor(module, property)?.value;
    const kind = typeof value === 'object' && value !== null ? kindOf(value) : undefined;
    if (kind !== undefined) remember(module, property, kind);
  }
}

/** Remembers for a copy what its original has registered. */
export function rememberAs(original: Module, copy: Module): void {
  const kinds = remembered.get(original);
  if (kinds !== undefined) remembered.set(copy, new Map(kinds));
}

function remember(module: Module, property: string, kind: Kind): void {
  const kinds = remembered.get(module);
  if (kinds === undefined) remembered.set(module, new Map([[property, kind]]));
  else kinds.set(property, kind);
}

/** Properties that were deleted or made non-enumerable were removed on purpose. */
function forgetAllBut(module: Module, properties: readonly string[]): void {
  const kinds = remembered.get(module);
  if (kinds === undefined || kinds.size === 0) return;
  const present = new Set(properties);
  for (const property of kinds.keys()) if (!present.has(property)) kinds.delete(property);
}

/**
 * @throws TypeError if two properties share a state name, a name contains a dot, an array, map, set
 *   or plain object contains modules, parameters or buffers, or another value has replaced one
 */
export function registeredIn(module: Module): Registered {
  (module as { [checkMembers]?: () => void })[checkMembers]?.();
  const registered: Registered = { parameters: [], buffers: [], children: [] };
  const names = new Map<string, string>();
  const add = <T extends object>(list: Entry<T>[], entry: Entry<T>) => {
    checkName(module, entry, names.get(entry.name));
    names.set(entry.name, entry.property);
    list.push(entry);
  };
  const properties = Object.keys(module);
  forgetAllBut(module, properties);
  for (const property of properties) {
    // Data properties only: a getter could run arbitrary code.
    const value: unknown = Object.getOwnPropertyDescriptor(module, property)?.value;
    if (value === undefined || value === null) continue;
    const kind = typeof value === 'object' ? kindOf(value) : undefined;
    if (kind === undefined) {
      rejectReplaced(module, property, value);
      if (typeof value === 'object') rejectHidden(module, property, value);
      continue;
    }
    remember(module, property, kind);
    add<object>(registered[kind], { property, name: module.stateNameOf(property), value });
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
      `${owner}: the state name "${name}" of property "${property}" must not contain a dot`,
    );
  }
}

/** Like PyTorch's "cannot assign … as parameter 'weight' (torch.nn.Parameter or None expected)". */
function rejectReplaced(module: Module, property: string, value: unknown): void {
  const kind = remembered.get(module)?.get(property);
  if (kind === undefined) return;
  const { what, expected, fix } = {
    parameters: {
      what: 'parameter',
      expected: 'a Parameter',
      fix: `wrap the tensor, new Parameter(tensor), or copy it, module.${property}.detach().copy_(tensor)`,
    },
    buffers: { what: 'buffer', expected: 'a Buffer', fix: 'wrap the tensor: new Buffer(tensor)' },
    children: { what: 'submodule', expected: 'a Module', fix: 'make its class extend Module' },
  }[kind];
  throw new TypeError(
    `${module.constructor.name}: cannot have ${describe(value)} as ${what} "${property}" ` +
      `(${expected} or null expected): it would be neither trained, moved nor saved; ${fix} ` +
      '(store values that are not state in a property with another name)',
  );
}

/** How deep nested collections are searched, and how many values in them. */
const hiddenDepth = 4;
const hiddenValues = 10_000;

/** The contents of plain collections are not registered: they would be neither trained nor saved. */
function rejectHidden(module: Module, property: string, value: object): void {
  const [kind] = contents(value);
  const hidden = hiddenIn(value, hiddenDepth, { left: hiddenValues });
  if (hidden === null) return;
  const fix =
    hidden instanceof Buffer
      ? 'assign it to its own property'
      : `use a ${kind === 'an array' || kind === 'a Set' ? 'ModuleList' : 'ModuleDict'}`;
  throw new TypeError(
    `${module.constructor.name}: property "${property}" is ${kind} with a ` +
      `${hidden.constructor.name} in it, which would be neither trained nor saved; ` +
      `${fix} (to exclude it on purpose, make the property non-enumerable)`,
  );
}

/** The first module, parameter or buffer in nested collections. */
function hiddenIn(value: object, depth: number, budget: { left: number }): object | null {
  for (const item of contents(value)[1]) {
    if (budget.left-- <= 0) return null;
    if (typeof item !== 'object' || item === null) continue;
    if (kindOf(item) !== undefined) return item;
    const hidden = depth > 1 ? hiddenIn(item, depth - 1, budget) : null;
    if (hidden !== null) return hidden;
  }
  return null;
}

function contents(value: object): [kind: string, values: Iterable<unknown>] {
  if (Array.isArray(value)) return ['an array', value];
  if (value instanceof Map) return ['a Map', value.values()];
  if (value instanceof Set) return ['a Set', value];
  const prototype: unknown = Object.getPrototypeOf(value);
  const plain = prototype === Object.prototype || prototype === null;
  return ['an object', plain ? Object.values(value) : []];
}

/** The position of a module below another. */
export interface Place {
  /** dotted path of state names; for the root, the prefix */
  readonly name: string;
  readonly module: Module;
  readonly registered: Registered;
}

/**
 * `root` and all its submodules with what each has registered, parents first, in the order of the
 * keys in PyTorch's state dicts.
 *
 * @param removeDuplicate list a module that occurs several times only at its first position
 * @throws TypeError if a module contains itself
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
        `${root.constructor.name}: "${name}" is the ${module.constructor.name} that contains ` +
          `it (${outer === '' ? 'the root' : `"${outer}"`}); modules must not form a cycle ` +
          '(store a reference to a parent in a non-enumerable property)',
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

/** `static stateNames` of the class and its base classes; subclasses take precedence. */
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
