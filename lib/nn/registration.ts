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
 * @throws TypeError when two properties share a state name, a name holds a dot, or an array hides
 *   modules or parameters
 */
export function registeredIn(module: Module): Registered {
  const registered: Registered = { parameters: [], buffers: [], children: [] };
  const names = new Map<string, string>();
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
      if (Array.isArray(value)) refuseHidden(module, property, value);
      continue;
    }
    const name = module.stateNameOf(property);
    const other = names.get(name);
    if (other !== undefined) {
      throw new TypeError(
        `${module.constructor.name}: properties "${other}" and "${property}" share the state name "${name}"`,
      );
    }
    if (name.includes('.')) {
      throw new TypeError(
        `${module.constructor.name}: the state name "${name}" of property "${property}" must not hold a dot`,
      );
    }
    names.set(name, property);
    (list as Entry<object>[]).push({ property, name, value });
  }
  return registered;
}

/** A plain array is not looked into: what is in it would be neither trained nor saved. */
function refuseHidden(module: Module, property: string, values: readonly unknown[]): void {
  const hidden = values.find((value) => isModule(value) || value instanceof Parameter);
  if (hidden === undefined) return;
  throw new TypeError(
    `${module.constructor.name}: property "${property}" is an array with a ` +
      `${(hidden as object).constructor.name} in it, which would be neither trained nor saved; ` +
      'use a ModuleList (to keep it out on purpose, make the property non-enumerable)',
  );
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
