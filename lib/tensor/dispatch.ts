/**
 * Calls dispatcher ops by name. Every computation of the package passes through here:
 * TypeScript → `call` → native/bind → dispatcher → kernel.
 */
import { AsyncResource } from 'node:async_hooks';
import { nativeAddon } from '../runtime/native/load.js';
import { TorchError } from '../runtime/errors.js';
import { describe } from '../runtime/arguments.js';
import type { AtenOps, TorchformerOps } from './generated/opTypes.js';
import type { BoundOp, NativeAddon } from './native.js';
import { callBound, shareCallFrame } from './callFrame.js';
import { namingDevices } from './mixedDevices.js';
import { makeTensor, slotOf, useSlots } from './slot.js';
import type { Tensor } from './tensor.js';

/** A number that becomes a floating-point Scalar even if its value is an integer. */
export class FloatScalar {
  /** The number. */
  readonly value: number;
  /** Use {@link float} to create one. @throws TypeError if `value` is not a number */
  constructor(value: number) {
    if (typeof value !== 'number') {
      throw new TypeError(`float: value must be a number, got ${describe(value)}`);
    }
    this.value = value;
  }
}

/**
 * Forces a JS number to a floating-point Scalar: `call('aten::mul.Scalar', ints, float(2))` returns
 * floats, like `ints * 2.0` in Python, where plain `2` keeps integers.
 */
export function float(value: number): FloatScalar {
  return new FloatScalar(value);
}

const shownWarnings = new Set<string>();

/** Emits a libtorch warning as a Node.js warning, once per text. */
function warnOnce(message: string): void {
  if (shownWarnings.has(message)) return;
  shownWarnings.add(message);
  process.emitWarning(message, 'TorchWarning');
}

/** Lets native code run callbacks of a call in its async context, which determines the scope. */
function captureContext(): (call: () => void) => void {
  const resource = new AsyncResource('torchformer');
  return (call) => resource.runInAsyncScope(call);
}

let addon: NativeAddon | undefined;

/** The addon of this environment, loaded and initialized on first use. @internal */
export function native(): NativeAddon {
  if (addon === undefined) {
    const loaded = nativeAddon<Tensor>();
    const frame = loaded.initialize({
      makeTensor,
      slotOf,
      TorchError,
      FloatScalar,
      warn: warnOnce,
      captureContext,
    });
    shareCallFrame(frame, (text) => loaded.frameString(text));
    useSlots(
      (slot) => loaded.freeSlot(slot),
      () => loaded.reportMemory(),
    );
    // On process.exit and after an uncaught error, libtorch's static objects are destroyed while the
    // native thread may still use them, so it must end first. Signals end the process at once and
    // need no handler.
    process.once('exit', () => loaded.stopWorker());
    addon = loaded;
  }
  return addon;
}

const boundOps = new Map<string, BoundOp>();

/** Finds `namespace::name[.overload]`. @throws TorchError ERR_UNKNOWN_OP */
function boundOp(op: string): BoundOp {
  let bound = boundOps.get(op);
  if (bound === undefined) {
    if (typeof op !== 'string') {
      throw new TypeError(
        `call: op must be a name such as 'aten::add.Tensor', got ${describe(op)}`,
      );
    }
    const dot = op.indexOf('.', op.indexOf('::'));
    bound = dot < 0 ? native().bind(op, '') : native().bind(op.slice(0, dot), op.slice(dot + 1));
    boundOps.set(op, bound);
  }
  return bound;
}

function run(op: string, args: readonly unknown[]): unknown {
  const bound = boundOp(op);
  try {
    return callBound(bound, args, makeTensor);
  } catch (error) {
    throw namingDevices(error, op, bound, args);
  }
}

/**
 * Runs a dispatcher op synchronously.
 *
 * @param op `aten::add.Tensor`, `torchformer::layer_norm`, …; without overload the default one
 * @param args in schema order; a trailing plain object passes arguments by their schema names
 * @returns tensors as {@link Tensor}, an undefined tensor as null, tuples and lists as arrays;
 *   the result of an in-place or `out` op is the Tensor that was passed in
 * @throws TorchError
 */
export function call(op: string, ...args: unknown[]): unknown {
  return run(op, args);
}

/** {@link call} for ops that return one tensor. */
export function callTensor(op: string, ...args: unknown[]): Tensor {
  return run(op, args) as Tensor;
}

/** {@link call} for ops that return a list or tuple of tensors. */
export function callTensors(op: string, ...args: unknown[]): Tensor[] {
  return run(op, args) as Tensor[];
}

/**
 * Runs a dispatcher op off the event loop, on this environment's native thread; jobs run in the
 * order of the calls. Arguments and grad mode are captured at the call: do not modify the arguments
 * before the promise settles.
 */
export async function callAsync(op: string, ...args: unknown[]): Promise<unknown> {
  const bound = boundOp(op);
  try {
    return await bound.async(...args);
  } catch (error) {
    throw namingDevices(error, op, bound, args);
  }
}

type OpCall = ((...args: unknown[]) => unknown) & {
  readonly [overload: string]: (...args: unknown[]) => unknown;
};
type OpNamespace = { readonly [name: string]: OpCall };

const overloadNames = new Map<string, string[]>();

/** Runs the first overload of `name` whose schema accepts these arguments. */
function callByKinds(name: string, args: unknown[]): unknown {
  let overloads = overloadNames.get(name);
  if (overloads === undefined) {
    // Cached, because the dispatcher searches all its names for this.
    overloads = native().overloads(name);
    overloadNames.set(name, overloads);
  }
  if (overloads.length === 0) throw new TorchError('ERR_UNKNOWN_OP', `no op named ${name}`);
  const reasons: string[] = [];
  for (const overload of overloads) {
    try {
      return call(overload === '' ? name : `${name}.${overload}`, ...args);
    } catch (error) {
      // Try the next overload only if an argument was rejected: the op itself has not run then.
      if (!(error instanceof TorchError) || error.code !== 'ERR_ARGUMENT') throw error;
      if (overloads.length === 1) throw error;
      reasons.push(error.message);
    }
  }
  throw new TorchError(
    'ERR_ARGUMENT',
    `${name}: no overload accepts these arguments:\n  ${reasons.join('\n  ')}`,
  );
}

function opNamespace(namespace: string): OpNamespace {
  return cachedProperties<OpCall>((name) => {
    const qualified = `${namespace}::${name}`;
    const callable = (...args: unknown[]) => callByKinds(qualified, args);
    const overloads = cachedProperties((overload) => {
      const op = `${qualified}.${overload}`;
      return (...args: unknown[]) => call(op, ...args);
    });
    return new Proxy(callable, {
      get: (target, key) =>
        typeof key === 'string' && !(key in target)
          ? overloads[key]
          : (Reflect.get(target, key) as unknown),
    }) as OpCall;
  });
}

function cachedProperties<T>(make: (name: string) => T): { readonly [name: string]: T } {
  const cache = new Map<string, T>();
  return new Proxy(Object.create(null) as { readonly [name: string]: T }, {
    get: (_target, key) => {
      // A promise check (`then`) must not turn the namespace into a thenable.
      if (typeof key !== 'string' || key === 'then') return undefined;
      let made = cache.get(key);
      if (made === undefined) cache.set(key, (made = make(key)));
      return made;
    },
  });
}

/**
 * All registered ops, for direct calls: `ops.aten.relu(x)`, `ops.aten.softmax.int(x, -1)`.
 * Without an overload name, the first overload that accepts the types of the arguments runs. The
 * TypeScript types are generated from the schemas; use {@link call} for ops of other namespaces.
 *
 * Only types and number of the arguments are checked. A few ATen ops crash the process on malformed
 * arguments (such as `_embedding_bag_dense_backward`, `_segment_reduce_backward`); the typed API and
 * `torchformer::*` check all shapes first. `torchformer::*` do not check values in tensors on a GPU,
 * since that would wait for the GPU: rows outside a table give NaN or are skipped, but offsets of
 * `packed_attention` outside the rows read memory outside the tensors. Keep such offsets on the CPU,
 * where they are checked, or check them first.
 */
export const ops = cachedProperties(opNamespace) as unknown as {
  /** PyTorch's ops, by the names and overloads of their schemas. */
  readonly aten: AtenOps;
  /** The ops of this package: attention, norms, feed-forward, dropout. */
  readonly torchformer: TorchformerOps;
};
