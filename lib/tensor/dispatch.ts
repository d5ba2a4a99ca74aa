/**
 * Calls of dispatcher ops by name. Every computation of the package passes through here:
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
import { makeTensor, slotOf, useFreeSlot } from './slot.js';
import type { Tensor } from './tensor.js';

/** A number that becomes a floating Scalar even if its value is an integer. */
export class FloatScalar {
  /** The number. */
  readonly value: number;
  /** {@link float} makes one. @throws TypeError for anything but a number */
  constructor(value: number) {
    if (typeof value !== 'number') {
      throw new TypeError(`float: value must be a number, got ${describe(value)}`);
    }
    this.value = value;
  }
}

/**
 * Forces a JS number to a floating Scalar: `call('aten::mul.Scalar', ints, float(2))` gives floats,
 * as `ints * 2.0` does in Python, where plain `2` keeps integers.
 */
export function float(value: number): FloatScalar {
  return new FloatScalar(value);
}

const shownWarnings = new Set<string>();

/** A warning of libtorch's as a warning of Node's, once a text. */
function warnOnce(message: string): void {
  if (shownWarnings.has(message)) return;
  shownWarnings.add(message);
  process.emitWarning(message, 'TorchWarning');
}

/** What native code does for a call later, in the call's async context: its scope among others. */
function captureContext(): (call: () => void) => void {
  const resource = new AsyncResource('torchformer');
  return (call) => resource.runInAsyncScope(call);
}

let addon: NativeAddon | undefined;

/** The addon of this environment, loaded and initialized at first use. @internal */
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
    shareCallFrame(frame);
    useFreeSlot((slot) => loaded.freeSlot(slot));
    // On process.exit and after an uncaught error libtorch's static objects go while the native
    // thread may still use them: it has to end first. No signal handler; those end at once.
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
 * Runs a dispatcher op now.
 *
 * @param op `aten::add.Tensor`, `torchformer::layer_norm`, …; without overload the default one
 * @param args in schema order; a trailing plain object gives arguments by their schema names
 * @returns tensors as {@link Tensor}, an undefined tensor as null, tuples and lists as arrays;
 *   an in-place or `out` result is the very Tensor that was passed in
 * @throws TorchError with the code of the fault
 */
export function call(op: string, ...args: unknown[]): unknown {
  return run(op, args);
}

/** {@link call} for ops with one tensor as result. */
export function callTensor(op: string, ...args: unknown[]): Tensor {
  return run(op, args) as Tensor;
}

/** {@link call} for ops with a list or tuple of tensors as result. */
export function callTensors(op: string, ...args: unknown[]): Tensor[] {
  return run(op, args) as Tensor[];
}

/**
 * Runs a dispatcher op off the event loop, on this environment's native thread; jobs run in the
 * order of the calls. The arguments are taken now (grad mode too): do not write to them before
 * the promise settles.
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

/** Runs the first overload of `name` whose schema takes these arguments. */
function callByKinds(name: string, args: unknown[]): unknown {
  let overloads = overloadNames.get(name);
  if (overloads === undefined) {
    // The dispatcher goes through all its names for this.
    overloads = native().overloads(name);
    overloadNames.set(name, overloads);
  }
  if (overloads.length === 0) throw new TorchError('ERR_UNKNOWN_OP', `no op named ${name}`);
  const reasons: string[] = [];
  for (const overload of overloads) {
    try {
      return call(overload === '' ? name : `${name}.${overload}`, ...args);
    } catch (error) {
      // Only a refused argument moves on to the next overload: the op itself has not run then.
      if (!(error instanceof TorchError) || error.code !== 'ERR_ARGUMENT') throw error;
      if (overloads.length === 1) throw error;
      reasons.push(error.message);
    }
  }
  throw new TorchError(
    'ERR_ARGUMENT',
    `${name}: no overload takes these arguments:\n  ${reasons.join('\n  ')}`,
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
 * Every registered op, raw: `ops.aten.relu(x)`, `ops.aten.softmax.int(x, -1)`.
 * Without overload name the first overload that takes the kinds of the arguments runs. Types are
 * made from the schemas; ops of other namespaces are called by {@link call}.
 *
 * Only kinds and counts of the arguments are checked here. A few ATen ops crash the process on
 * malformed arguments (such as `_embedding_bag_dense_backward`, `_segment_reduce_backward`);
 * the typed API and `torchformer::*` check every shape first. What the numbers in a tensor on a GPU
 * are, `torchformer::*` do not look at, since that would wait for the GPU: rows that a table does not
 * have give NaN or are left out, but offsets of `packed_attention` beyond the rows read outside of
 * the tensors. Keep such offsets on the CPU, where they are checked, or check them first.
 */
export const ops = cachedProperties(opNamespace) as unknown as {
  /** PyTorch's own ops, by the names and overloads of their schemas. */
  readonly aten: AtenOps;
  /** The ops of this package: attention, norms, feed-forward, dropout. */
  readonly torchformer: TorchformerOps;
};
