import { noGrad } from '../../tensor/autograd.js';
import { call, native } from '../../tensor/dispatch.js';
import { empty } from '../../tensor/create.js';
import { keep, tidy } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';
import type { Module } from './module.js';
import { Buffer, Parameter } from './parameter.js';
import { isModule, placesBelow, rememberAs } from './registration.js';
import { hasValues } from './withoutValues.js';

/** Implements `Module.clone`: a deep copy that preserves ties. */
export function copyModule<M extends Module>(module: M): M {
  placesBelow(module); // throws on cycles
  return tidy(() => noGrad(() => copied(module, new Made()) as M));
}

/** Copies by original, so that shared values are copied only once. */
class Made extends Map<object, unknown> {
  readonly #tensors = new Map<string, [original: Tensor, copy: Tensor][]>();

  addTensor(original: Tensor, copy: Tensor): void {
    const form = formOf(original);
    const alike = this.#tensors.get(form) ?? [];
    alike.push([original, copy]);
    this.#tensors.set(form, alike);
  }

  /** The copy of another tensor with exactly the same memory, if there is one. */
  twinOf(tensor: Tensor): Tensor | undefined {
    const alike = this.#tensors.get(formOf(tensor)) ?? [];
    return alike.find(([original]) => native().sameStorage(original, tensor))?.[1];
  }
}

/** A key that describes where a tensor's elements are in its storage. */
export function formOf(tensor: Tensor): string {
  const offset = call('aten::sym_storage_offset', tensor);
  return [tensor.dtype, offset, ...tensor.shape, ...tensor.strides].join();
}

function copied(value: unknown, made: Made): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (made.has(value)) return made.get(value);
  if (value instanceof Tensor) {
    const copy = copiedTensor(value, made);
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

function copiedTensor(tensor: Tensor, made: Made): Tensor | null {
  const owned = tensor instanceof Parameter || tensor instanceof Buffer;
  // A computed tensor belongs to the original's graph, or to a scope that has ended.
  if (!owned && (tensor.isDisposed || !tensor.isLeaf)) return null;
  const data = made.twinOf(tensor)?.detach() ?? valuesOf(tensor);
  made.addTensor(tensor, data);
  if (tensor instanceof Parameter) {
    return new Parameter(data, { requiresGrad: tensor.requiresGrad });
  }
  if (tensor instanceof Buffer) return new Buffer(data, { persistent: tensor.persistent });
  return keep(data);
}

/** A copy of a parameter's or a buffer's elements; of a large one only room within `withoutValues`. */
function valuesOf(tensor: Tensor): Tensor {
  const { dtype, device, shape } = tensor;
  const isDrawn = tensor instanceof Parameter && shape.length > 1;
  return hasValues() || !isDrawn ? tensor.detach().clone() : empty(shape, { dtype, device });
}

function copiedProperties(original: object, made: Made): object {
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
  if (isModule(original)) rememberAs(original, copy as Module);
  return copy;
}

/** `static transientNames` of the class and its base classes. */
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
