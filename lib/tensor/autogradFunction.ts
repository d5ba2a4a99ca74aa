/** Functions with a user-defined backward, and gradient hooks. */
import { checkFunction, checkRequiredOptions, describe } from '../runtime/arguments.js';
import { isGradEnabled, noGrad } from './autograd.js';
import { formatShape } from './check.js';
import { call, callTensor, native } from './dispatch.js';
import type { GradientCallback } from './native.js';
import { keep, Scope } from './scope.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/** What a function's forward passes to its backward. */
export interface FunctionContext {
  /**
   * Saves inputs, outputs or other tensors for the backward pass. Scopes do not free them; they are
   * freed with the graph. The backward pass throws if one of them was modified since.
   */
  save(...tensors: Tensor[]): void;
  /** The saved tensors, in order. */
  readonly saved: readonly Tensor[];
  /** For each argument of the call, whether it is a tensor that needs a gradient. */
  readonly needsGradient: readonly boolean[];
  /** For any values that are not tensors. */
  readonly state: Record<string, unknown>;
}

/** A gradient for each argument; null or undefined if it has none. */
export type Gradients = readonly (Tensor | null | undefined)[];

/** The argument of {@link defineFunction}. */
export interface FunctionDefinition<Arguments extends readonly unknown[], Output> {
  /** Name in `gradFn` and error messages. Default `'CustomFunction'`. */
  name?: string;
  /** Runs without recording gradients. Returns a tensor or an array of tensors. */
  forward(context: FunctionContext, ...args: Arguments): Output;
  /**
   * Receives a gradient for each output (null if it has none) and returns one for each argument of
   * `forward`, or just the gradient if there is one argument.
   */
  backward(context: FunctionContext, ...gradients: (Tensor | null)[]): Gradients | Tensor | null;
}

/** A handle to remove a hook. */
export interface RemovableHook {
  /** Removes the hook; has no effect if called again. */
  remove(): void;
}

/**
 * Defines a function with its own backward, like `torch.autograd.Function`:
 *
 * ```ts
 * const cube = defineFunction({
 *   name: 'Cube',
 *   forward(context, x: Tensor) {
 *     context.save(x);
 *     return x.pow(3);
 *   },
 *   backward({ saved: [x] }, gradient) {
 *     return gradient!.mul(x!.pow(2)).mul(3);
 *   },
 * });
 * const y = cube(x);
 * ```
 *
 * `backward` runs on the thread of the event loop, also in `backwardAsync`. With `createGraph` it
 * is differentiated as well; this throws if it uses a saved output, whose history is not kept.
 *
 * @throws TypeError if `definition` does not have `forward` and `backward`
 */
export function defineFunction<
  Arguments extends readonly unknown[],
  Output extends Tensor | readonly Tensor[],
>(definition: FunctionDefinition<Arguments, Output>): (...args: Arguments) => Output {
  checkRequiredOptions(
    'defineFunction',
    definition,
    ['name', 'forward', 'backward'],
    'forward and backward',
  );
  const { name = 'CustomFunction' } = definition;
  if (typeof definition.forward !== 'function' || typeof definition.backward !== 'function') {
    throw new TypeError('defineFunction: forward and backward must be functions');
  }
  return (...args) => {
    const recording = isGradEnabled();
    const needsGradient = args.map((value) => recording && isTensor(value) && value.requiresGrad);
    const context = new Context(needsGradient);
    const output = noGrad(() => definition.forward(context, ...args));
    const outputs = checkOutputs(name, output);
    if (!needsGradient.includes(true)) {
      context.free();
      return output;
    }
    context.close(outputs);
    const inputs = args.filter((_, index) => needsGradient[index]) as Tensor[];
    // Only shapes: the graph would hold the arguments themselves, which may be disposed of.
    const shapes = args.map((value) => (isTensor(value) ? value.shape : null));
    const callback: GradientCallback = (gradients) =>
      inScope(gradients, () => {
        context.checkUnchanged(name);
        context.checkDifferentiable(name);
        const results = definition.backward(context, ...gradients);
        return checkGradients(name, results, shapes).filter((_, index) => needsGradient[index]);
      });
    const recorded = native().attachBackward(name, inputs, outputs, callback, () => {
      context.free();
    });
    return (isTensor(output) ? recorded[0] : recorded) as Output;
  };
}

/**
 * Calls `hook` with the gradient of `tensor` in every backward pass; if it returns a tensor, that
 * replaces the gradient. It runs on the thread of the event loop, also in `backwardAsync`.
 *
 * @throws TypeError if the tensor does not require gradients
 */
export function registerGradientHook(
  tensor: Tensor,
  hook: (gradient: Tensor) => Tensor | null | undefined | void,
): RemovableHook {
  checkFunction('registerHook', 'hook', hook);
  if (!tensor.requiresGrad) {
    throw new TypeError('registerHook: the tensor does not require gradients');
  }
  const callback: GradientCallback = (gradients) =>
    inScope(gradients, () => {
      const result = hook(gradients[0] as Tensor) ?? null;
      if (result !== null && !isTensor(result)) {
        throw new TypeError(
          `registerHook: the hook must return a Tensor or nothing, got ${describe(result)}`,
        );
      }
      return [result];
    });
  const number = native().registerHook(tensor, callback, () => undefined);
  let removed = false;
  return {
    remove() {
      if (!removed) native().removeHook(tensor, number);
      removed = true;
    },
  };
}

/** Runs `work` in a scope that is disposed of, with the gradients, once native code has read them. */
function inScope(
  gradients: (Tensor | null)[],
  work: () => Gradients,
): { results: Gradients; done: () => void } {
  const scope = new Scope();
  scope.adopt(gradients);
  try {
    return { results: scope.run(work), done: () => scope.dispose() };
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

class Context implements FunctionContext {
  readonly needsGradient: readonly boolean[];
  readonly state: Record<string, unknown> = {};
  readonly #saved: Tensor[] = [];
  /** The version of each saved tensor when it was saved: how often it had been written to. */
  readonly #versions: unknown[] = [];
  #closed = false;
  #hasSavedOutput = false;

  constructor(needsGradient: readonly boolean[]) {
    this.needsGradient = needsGradient;
  }

  save(...tensors: Tensor[]): void {
    if (this.#closed) throw new TypeError('context.save: only forward can save tensors');
    for (const tensor of tensors) {
      if (!isTensor(tensor)) {
        throw new TypeError(`context.save: expected tensors, got ${describe(tensor)}`);
      }
      this.#saved.push(tensor);
      this.#versions.push(call('aten::_version', tensor));
    }
  }

  get saved(): readonly Tensor[] {
    return this.#saved;
  }

  /** Replaces the caller's tensors, which may be disposed of, by aliases. */
  close(outputs: readonly Tensor[]): void {
    this.#closed = true;
    this.#hasSavedOutput = this.#saved.some((tensor) => outputs.includes(tensor));
    this.#saved.forEach((tensor, index) => {
      this.#saved[index] = keep(callTensor('aten::alias', tensor));
    });
  }

  /** Gradients computed from values that have changed since would be wrong without any error. */
  checkUnchanged(name: string): void {
    this.#saved.forEach((tensor, index) => {
      const [before, now] = [this.#versions[index], call('aten::_version', tensor)];
      if (before === now) return;
      throw new TypeError(
        `${name}: saved tensor ${index} was modified by an in-place operation after forward ` +
          `(version ${String(now)}, saved at ${String(before)}); save a clone, or do not modify it`,
      );
    });
  }

  checkDifferentiable(name: string): void {
    if (this.#hasSavedOutput && isGradEnabled()) {
      throw new TypeError(
        `${name}: backward with createGraph needs the history of a saved output, which is not ` +
          'kept; recompute it from a saved input',
      );
    }
  }

  free(): void {
    if (this.#closed) for (const tensor of this.#saved) tensor.dispose();
    this.#saved.length = 0;
    this.#closed = true;
  }
}

function checkOutputs(name: string, output: unknown): Tensor[] {
  const outputs: unknown[] = Array.isArray(output) ? output : [output];
  for (const tensor of outputs) {
    if (!isTensor(tensor)) {
      throw new TypeError(
        `${name}: forward must return a Tensor or an array of Tensors, got ${describe(tensor)}`,
      );
    }
  }
  return outputs as Tensor[];
}

function checkGradients(
  name: string,
  results: Gradients | Tensor | null,
  shapes: readonly (readonly number[] | null)[],
): (Tensor | null)[] {
  const gradients = Array.isArray(results) ? (results as Gradients) : [results as Tensor | null];
  if (gradients.length !== shapes.length) {
    throw new TypeError(
      `${name}: backward must return a gradient for each of the ${shapes.length} arguments ` +
        `(null for none), got ${gradients.length}`,
    );
  }
  return gradients.map((gradient, index) => {
    if (gradient === null || gradient === undefined) return null;
    const shape = shapes[index] ?? null;
    if (!isTensor(gradient)) {
      throw new TypeError(
        `${name}: gradient ${index} must be a Tensor or null, got ${describe(gradient)}`,
      );
    }
    if (shape === null) {
      throw new TypeError(`${name}: argument ${index} is not a Tensor and cannot have a gradient`);
    }
    if (formatShape(gradient.shape) !== formatShape(shape)) {
      throw new RangeError(
        `${name}: gradient ${index} has shape ${formatShape(gradient.shape)}, but its argument has ` +
          formatShape(shape),
      );
    }
    return gradient;
  });
}
