import { noGrad } from '../tensor/autograd.js';
import { keep, tidy } from '../tensor/scope.js';
import { Tensor } from '../tensor/tensor.js';
import type { Module } from './module.js';
import { Buffer, Parameter } from './parameter.js';
import { isModule } from './registration.js';

/** The work of `Module.clone`: a deep copy in which ties stay ties. */
export function copyModule<M extends Module>(module: M): M {
  return tidy(() => noGrad(() => copied(module, new Map()) as M));
}

/** @param made copies by original, so that whatever is shared inside is copied once */
function copied(value: unknown, made: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (made.has(value)) return made.get(value);
  if (value instanceof Tensor) {
    const copy = copiedTensor(value);
    made.set(value, copy);
    return copy;
  }
  if (ArrayBuffer.isView(value) || value instanceof Date) return structuredClone(value);
  if (value instanceof Map) {
    const copy = new Map<unknown, unknown>();
    made.set(value, copy);
    for (const [key, item] of value) copy.set(copied(key, made), copied(item, made));
    return copy;
  }
  if (value instanceof Set) {
    const copy = new Set<unknown>();
    made.set(value, copy);
    for (const item of value) copy.add(copied(item, made));
    return copy;
  }
  if (Array.isArray(value) || isModule(value) || isPlainObject(value)) {
    return copiedProperties(value, made);
  }
  return value;
}

function copiedTensor(tensor: Tensor): Tensor | null {
  if (tensor instanceof Parameter) {
    return new Parameter(tensor.detach().clone(), { requiresGrad: tensor.requiresGrad });
  }
  if (tensor instanceof Buffer) {
    return new Buffer(tensor.detach().clone(), { persistent: tensor.persistent });
  }
  // The result of a computation belongs to a graph of the original.
  return tensor.isLeaf ? keep(tensor.detach().clone()) : null;
}

function copiedProperties(original: object, made: Map<object, unknown>): object {
  const copy = Array.isArray(original)
    ? []
    : (Object.create(Object.getPrototypeOf(original) as object | null) as object);
  made.set(original, copy);
  const transient = isModule(original) ? transientNames(original) : new Set();
  for (const key of Reflect.ownKeys(original)) {
    const descriptor = Object.getOwnPropertyDescriptor(original, key) as PropertyDescriptor;
    if ('value' in descriptor) {
      descriptor.value = transient.has(key) ? null : copied(descriptor.value, made);
    }
    Object.defineProperty(copy, key, descriptor);
  }
  return copy;
}

/** `static transientNames` of the class and all classes it extends. */
function transientNames(module: Module): Set<string | symbol> {
  const names = new Set<string>();
  let constructor: unknown = module.constructor;
  while (typeof constructor === 'function') {
    for (const name of (constructor as typeof Module).transientNames ?? []) names.add(name);
    constructor = Object.getPrototypeOf(constructor);
  }
  return names;
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
