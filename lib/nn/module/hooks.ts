/**
 * Hooks of modules. A module with hooks has its own `forward` property, which hides the one of its
 * class; a module without hooks has no such property, so it pays nothing for them.
 */
import { checkOptions, describe } from '../../runtime/arguments.js';
import type { RemovableHook } from '../../tensor/autogradFunction.js';
import { isPromise } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';
import { tapGradients } from './gradientTap.js';
import type { Gradients, GradientTap } from './gradientTap.js';
import type { Module } from './module.js';

/** Options of `Module.registerForwardHook` and the other methods that register hooks. */
export interface HookOptions {
  /** run before the hooks that are already registered; default false */
  prepend?: boolean;
}

/** @returns new inputs for `forward`; undefined or null: no change */
export type ForwardPreHook<M extends Module> = (
  module: M,
  inputs: Parameters<M['forward']>,
) => readonly [...Parameters<M['forward']>] | null | void;

/** @returns a new output of `forward`; undefined or null: no change */
export type ForwardHook<M extends Module> = (
  module: M,
  inputs: Parameters<M['forward']>,
  output: ReturnType<M['forward']>,
) => ReturnType<M['forward']> | null | void;

/** @returns new gradients for the inputs; undefined or null: no change */
export type BackwardHook<M extends Module> = (
  module: M,
  gradInputs: readonly (Tensor | null)[],
  gradOutputs: readonly (Tensor | null)[],
) => readonly (Tensor | null)[] | null | void;

type Hook = (module: Module, ...rest: never[]) => unknown;
type Forward = (this: Module, ...inputs: unknown[]) => unknown;

/** Plain maps by number, so that a deep copy of the module copies them too. */
interface Hooks {
  readonly forwardPre: Map<number, Hook>;
  readonly forward: Map<number, Hook>;
  readonly backward: Map<number, Hook>;
  /** A `forward` assigned to the module instance. */
  ownForward: Forward | null;
}

type HookKind = 'forwardPre' | 'forward' | 'backward';

const hooksOf = Symbol('torchformer.hooks');
type Hooked = Module & { [hooksOf]?: Hooks };

let lastNumber = 0;

/** Implements `Module.register…Hook`. @throws TypeError if `hook` is not a function */
export function addHook(
  module: Module,
  kind: HookKind,
  hook: (module: never, ...rest: never[]) => unknown,
  options: HookOptions = {},
): RemovableHook {
  const owner = `register${kind.charAt(0).toUpperCase()}${kind.slice(1)}Hook`;
  if (typeof hook !== 'function') {
    throw new TypeError(`${owner}: hook must be a function, got ${describe(hook)}`);
  }
  checkOptions(owner, options, ['prepend']);
  const hooks = (module as Hooked)[hooksOf] ?? install(module);
  const list = hooks[kind];
  const number = ++lastNumber;
  const others = options.prepend === true ? [...list] : [];
  if (others.length > 0) list.clear();
  list.set(number, hook as Hook);
  for (const [key, value] of others) list.set(key, value);
  return {
    remove() {
      list.delete(number);
      if (isEmpty(hooks) && (module as Hooked)[hooksOf] === hooks) uninstall(module, hooks);
    },
  };
}

/** Implements `Module.clearHooks`. */
export function clearHooks(module: Module): void {
  const hooks = (module as Hooked)[hooksOf];
  if (hooks === undefined) return;
  for (const list of [hooks.forwardPre, hooks.forward, hooks.backward]) list.clear();
  uninstall(module, hooks);
}

function isEmpty({ forwardPre, forward, backward }: Hooks): boolean {
  return forwardPre.size + forward.size + backward.size === 0;
}

function install(module: Module): Hooks {
  const own = Object.getOwnPropertyDescriptor(module, 'forward')?.value as Forward | undefined;
  const hooks: Hooks = {
    forwardPre: new Map(),
    forward: new Map(),
    backward: new Map(),
    ownForward: own ?? null,
  };
  Object.defineProperty(module, hooksOf, { value: hooks, configurable: true });
  // An accessor, so that a `forward` assigned later is hooked instead of replacing the hooks.
  Object.defineProperty(module, 'forward', {
    configurable: true,
    get: () => hookedForward,
    set(this: Hooked, forward: Forward) {
      (this[hooksOf] as Hooks).ownForward = forward;
    },
  });
  return hooks;
}

function uninstall(module: Module, { ownForward }: Hooks): void {
  const plain = module as { [hooksOf]?: Hooks; forward?: unknown };
  delete plain[hooksOf];
  delete plain.forward;
  if (ownForward !== null) plain.forward = ownForward;
}

/** `forward` of a module with hooks. Depends only on `this`, since copies of the module share it. */
function hookedForward(this: Module, ...given: unknown[]): unknown {
  const hooks = (this as Hooked)[hooksOf] as Hooks;
  let inputs = given;
  for (const hook of [...hooks.forwardPre.values()]) {
    const result = call(hook, this, inputs);
    if (isChange(result)) inputs = checkedInputs(this, hook, result);
  }
  const tap = hooks.backward.size === 0 ? null : tapFor(this, hooks, inputs);
  if (tap !== null) inputs = tap.inputs;
  const forward =
    hooks.ownForward ?? (Reflect.get(Object.getPrototypeOf(this) as object, 'forward') as Forward);
  let output = forward.apply(this, inputs);
  for (const hook of [...hooks.forward.values()]) {
    const result = call(hook, this, inputs, output);
    if (isChange(result)) output = checkedOutput(this, hook, result, output);
  }
  return tap === null ? output : tap.output(output);
}

/** Runs the backward hooks registered now, except those removed before the backward pass. */
function tapFor(module: Module, hooks: Hooks, inputs: readonly unknown[]): GradientTap | null {
  const owner = module.constructor.name;
  const numbers = [...hooks.backward.keys()];
  return tapGradients(owner, inputs, (given, gradOutputs) => {
    let gradInputs = given;
    for (const number of numbers) {
      const hook = hooks.backward.get(number);
      if (hook === undefined) continue;
      const result = call(hook, module, gradInputs, gradOutputs);
      if (isChange(result)) gradInputs = checkedGradients(owner, hook, result, inputs.length);
    }
    return gradInputs;
  });
}

function call(hook: Hook, module: Module, ...rest: unknown[]): unknown {
  return (hook as (module: Module, ...rest: unknown[]) => unknown)(module, ...rest);
}

/** Whether a hook returned a value; null is treated like PyTorch's None. */
function isChange(result: unknown): boolean {
  return result !== undefined && result !== null;
}

function checkedInputs(module: Module, hook: Hook, result: unknown): unknown[] {
  if (Array.isArray(result)) return result;
  throw misfit(module.constructor.name, 'forward pre-hook', hook, result, 'an array of all inputs');
}

/** A new output of the same kind. One-line arrow functions often return a value by accident. */
function checkedOutput(module: Module, hook: Hook, result: unknown, output: unknown): unknown {
  const owner = module.constructor.name;
  const reject = (expected: string) => misfit(owner, 'forward hook', hook, result, expected);
  if (output instanceof Tensor && !(result instanceof Tensor))
    throw reject('a Tensor, like forward');
  if (Array.isArray(output) && !Array.isArray(result)) throw reject('an array, like forward');
  if (typeof result !== 'object' || isPromise(result))
    throw reject('the same kind of value as forward');
  return result;
}

function checkedGradients(owner: string, hook: Hook, result: unknown, count: number): Gradients {
  const fits =
    Array.isArray(result) &&
    result.length === count &&
    result.every((item) => item === null || item instanceof Tensor);
  if (fits) return result as Gradients;
  const expected = `an array with a gradient or null for each of forward's ${count} arguments`;
  throw misfit(owner, 'backward hook', hook, result, expected);
}

function misfit(
  owner: string,
  kind: string,
  hook: Hook,
  result: unknown,
  expected: string,
): TypeError {
  const hint = isPromise(result) ? '; hooks must not be async' : '';
  // The promise is never awaited; its rejection must not end the process.
  if (isPromise(result)) result.then(undefined, () => undefined);
  return new TypeError(
    `${owner}: a ${kind} (${describe(hook)}) must return ${expected}, or nothing, ` +
      `got ${describe(result)}${hint}`,
  );
}
