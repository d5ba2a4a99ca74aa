/**
 * Scopes dispose of temporary tensors.
 *
 * The garbage collector sees only the small JS objects and frees nothing within one tick, so loops
 * need `tidy` or a `Scope`. The current scope belongs to the async context, not to a global, so
 * concurrent requests of a server do not dispose of each other's tensors.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { checkFunction } from '../runtime/arguments.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

const currentScopes = new AsyncLocalStorage<Scope | undefined>();
// Most code runs outside any scope; then this count avoids the lookup of the async context.
let openScopes = 0;

/** A set of tensors that are disposed of together. */
export class Scope {
  readonly #parent: Scope | undefined;
  readonly #tensors = new Set<Tensor>();
  #open = true;

  constructor() {
    this.#parent = currentScope();
    openScopes++;
  }

  /**
   * Runs `fn` with this scope as the current one, also after an `await` in it.
   * Tensors created inside belong to the scope until {@link Scope.dispose}.
   */
  run<T>(fn: () => T): T {
    if (!this.#open)
      throw new TypeError('Scope.run: the scope has been disposed of; create a new one');
    checkFunction('Scope.run', 'fn', fn);
    return currentScopes.run(this, fn);
  }

  /** Adds all tensors in `value`, including those in arrays and objects, to this scope. */
  adopt(value: unknown): void {
    if (!this.#open) return;
    forEachTensor(value, (tensor) => {
      if (tensor.kept) return;
      this.#tensors.add(tensor);
    });
  }

  /** @internal Called by the Tensor constructor. */
  add(tensor: Tensor): void {
    if (this.#open) this.#tensors.add(tensor);
  }

  /** Moves all tensors in `value` from this scope to the enclosing one. */
  release(value: unknown): void {
    forEachTensor(value, (tensor) => {
      if (this.#tensors.delete(tensor)) this.#parent?.adopt(tensor);
    });
  }

  /** @internal Removes one tensor from this scope and all enclosing ones. */
  forget(tensor: Tensor): void {
    this.#tensors.delete(tensor);
    this.#parent?.forget(tensor);
  }

  /** Disposes of all tensors of the scope; has no effect if called again. */
  dispose(): void {
    if (!this.#open) return;
    this.#open = false;
    openScopes--;
    // `keep` may have been called in another async context, which cannot see this scope.
    for (const tensor of this.#tensors) if (!tensor.kept) tensor.dispose();
    this.#tensors.clear();
  }

  /** {@link Scope.dispose} at the end of a block: `using scope = new Scope()`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** The scope of this async context, or undefined. @internal */
export function currentScope(): Scope | undefined {
  return openScopes === 0 ? undefined : currentScopes.getStore();
}

/**
 * Runs `fn` and disposes of all tensors created inside, except those it returns (also in arrays,
 * maps and objects), which then belong to the enclosing scope.
 *
 * @throws TypeError if `fn` returns a Promise: use `new Scope()` and `scope.run(async …)` instead
 */
export function tidy<T>(fn: () => T): T {
  checkFunction('tidy', 'fn', fn, 'a function');
  const scope = new Scope();
  try {
    const result = scope.run(fn);
    refusePromise(
      result,
      'tidy: fn returned a Promise, but its tensors would be disposed of before it settles; ' +
        'use `const scope = new Scope(); await scope.run(fn); scope.dispose()`',
    );
    scope.release(result);
    return result;
  } finally {
    scope.dispose();
  }
}

/**
 * Permanently removes all tensors in `value` from all scopes, for example parameters, buffers and
 * optimizer state, which must survive the scope in which they are created.
 */
export function keep<T>(value: T): T {
  forEachTensor(value, (tensor) => {
    tensor.kept = true;
    currentScope()?.forget(tensor);
  });
  return value;
}

/**
 * @throws TypeError with this message if `value` is a Promise. Its work continues, and its rejection
 *   does not end the process as unhandled
 * @internal
 */
export function refusePromise(value: unknown, message: string): void {
  if (!isPromise(value)) return;
  value.then(undefined, () => undefined);
  throw new TypeError(message);
}

/** @internal */
export function isPromise(value: unknown): value is Promise<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

function forEachTensor(
  value: unknown,
  visit: (tensor: Tensor) => void,
  seen = new Set<object>(),
): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return;
  if (isTensor(value)) {
    visit(value);
    return;
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return;
  seen.add(value);
  if (Array.isArray(value) || value instanceof Set) {
    for (const item of value) forEachTensor(item, visit, seen);
  } else if (value instanceof Map) {
    for (const item of value.values()) forEachTensor(item, visit, seen);
  } else {
    for (const item of Object.values(value)) forEachTensor(item, visit, seen);
  }
}
