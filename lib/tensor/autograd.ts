/** Gradients: switching their recording, and computing them. */
import { checkBoolean, checkFunction, checkOptions, describe } from '../runtime/arguments.js';
import { checkTensor, checkTensors, formatShape } from './check.js';
import { native } from './dispatch.js';
import type { BackwardOptions as NativeBackwardOptions } from './native.js';
import { isPromise } from './scope.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/** Options of {@link Tensor.backward} and {@link Tensor.backwardAsync}. */
export interface BackwardOptions {
  /** Upstream gradient with the tensor's shape. Default 1, for tensors with one element. */
  gradient?: Tensor;
  /** Keeps the graph for another backward. Default: the value of `createGraph`. */
  retainGraph?: boolean;
  /** Records the gradients' own computation, for gradients of gradients. Default false. */
  createGraph?: boolean;
  /** Only these leaves get a gradient. Default: all. */
  inputs?: readonly Tensor[];
}

/** Options of {@link grad}. */
export interface GradOptions {
  /** Upstream gradients, one per output; null for 1. Default: all null. */
  gradOutputs?: readonly (Tensor | null)[];
  /** Keeps the graph for another backward. Default: the value of `createGraph`. */
  retainGraph?: boolean;
  /** Records the gradients' own computation, for gradients of gradients. Default false. */
  createGraph?: boolean;
  /** Gives null for inputs that the outputs do not depend on. Default false: an error. */
  allowUnused?: boolean;
}

/** Whether operations are being recorded. */
export function isGradEnabled(): boolean {
  return native().gradMode();
}

/**
 * Runs `fn` without recording operations for gradients; returns its result.
 *
 * @throws TypeError when `fn` is async: the mode belongs to the thread and ends with this call.
 *   Native jobs take the mode along when they are started, so this works:
 *   `const [job] = noGrad(() => [callAsync(…)]); await job;`
 */
export function noGrad<T>(fn: () => T): T {
  return withGradMode('noGrad', false, fn);
}

/** Runs `fn` with recording on, inside a {@link noGrad}. @throws TypeError when `fn` is async */
export function enableGrad<T>(fn: () => T): T {
  return withGradMode('enableGrad', true, fn);
}

const wayOut = (owner: string): string =>
  `its code after an await would run outside of ${owner}; wrap each synchronous piece, and start ` +
  `native jobs inside: const [job] = ${owner}(() => [callAsync(…)]); await job`;

function withGradMode<T>(owner: string, enabled: boolean, fn: () => T): T {
  checkFunction(owner, 'fn', fn);
  if (Object.prototype.toString.call(fn) === '[object AsyncFunction]') {
    throw new TypeError(`${owner}: fn is async, but ${wayOut(owner)}`);
  }
  const addon = native();
  const before = addon.gradMode();
  addon.setGradMode(enabled);
  let result: T;
  try {
    result = fn();
  } finally {
    addon.setGradMode(before);
  }
  if (isPromise(result)) {
    // Whoever ignores this error must not be ended by the promise's own.
    result.then(undefined, () => undefined);
    throw new TypeError(`${owner}: fn returned a Promise, but ${wayOut(owner)}`);
  }
  return result;
}

/** Checks the arguments of a backward pass and brings them to native form. */
function backwardArguments(
  tensor: Tensor,
  options: BackwardOptions,
): [tensors: Tensor[], options: NativeBackwardOptions] {
  checkOptions('backward', options, ['gradient', 'retainGraph', 'createGraph', 'inputs']);
  const { gradient, createGraph = false, retainGraph = createGraph, inputs } = options;
  checkBoolean('backward', 'retainGraph', retainGraph);
  checkBoolean('backward', 'createGraph', createGraph);
  const leaves = inputs === undefined ? [] : [...checkTensors('backward', 'inputs', inputs)];
  checkUpstream('backward', 'gradient', 'the tensor', tensor, gradient ?? null);
  return [[tensor], { gradients: [gradient ?? null], retainGraph, createGraph, inputs: leaves }];
}

/** @throws TypeError, RangeError unless `gradient` fits `tensor` */
function checkUpstream(
  owner: string,
  name: string,
  what: string,
  tensor: Tensor,
  gradient: Tensor | null,
): void {
  if (!tensor.requiresGrad) {
    throw new TypeError(
      `${owner}: ${what} was computed from nothing that requires gradients; set requiresGrad ` +
        'on its inputs, and check that no noGrad was around',
    );
  }
  if (gradient === null) {
    if (tensor.numel === 1) return;
    throw new RangeError(
      `${owner}: ${name} is needed because ${what} has shape ${formatShape(tensor.shape)}; ` +
        'give one, or reduce to one element, as in loss.sum()',
    );
  }
  checkTensor(owner, name, gradient);
  if (formatShape(gradient.shape) !== formatShape(tensor.shape)) {
    throw new RangeError(
      `${owner}: ${name} must have the shape of ${what}, ${formatShape(tensor.shape)}, ` +
        `got ${formatShape(gradient.shape)}`,
    );
  }
}

/** `tensor.backward(options)`. @internal */
export function runBackward(tensor: Tensor, options: BackwardOptions): void {
  native().backward(...backwardArguments(tensor, options));
}

/** `tensor.backwardAsync(options)`. @internal */
export async function runBackwardAsync(tensor: Tensor, options: BackwardOptions): Promise<void> {
  await native().backwardAsync(...backwardArguments(tensor, options));
}

/**
 * The gradients of `outputs` (their sum) with respect to `inputs`, in the order of `inputs`;
 * no `.grad` is touched.
 *
 * @throws TypeError, RangeError for arguments that do not fit; TorchError when an input is not
 *   part of the graph and `allowUnused` is off
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options: GradOptions & { allowUnused: true },
): (Tensor | null)[];
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options?: GradOptions,
): Tensor[];
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options: GradOptions = {},
): (Tensor | null)[] {
  checkOptions('grad', options, ['gradOutputs', 'retainGraph', 'createGraph', 'allowUnused']);
  const { createGraph = false, retainGraph = createGraph, allowUnused = false } = options;
  checkBoolean('grad', 'retainGraph', retainGraph);
  checkBoolean('grad', 'createGraph', createGraph);
  checkBoolean('grad', 'allowUnused', allowUnused);
  const from = checkTensors('grad', 'outputs', listOf(outputs));
  const to = checkTensors('grad', 'inputs', listOf(inputs));
  const gradients = gradOutputsOf(options.gradOutputs, from.length);
  from.forEach((output, at) =>
    checkUpstream('grad', `gradOutputs[${at}]`, `outputs[${at}]`, output, gradients[at] ?? null),
  );
  to.forEach((input, at) => {
    if (!input.requiresGrad) {
      throw new TypeError(`grad: inputs[${at}] does not require gradients; set requiresGrad first`);
    }
  });
  return native().gradients([...from], [...to], {
    gradients,
    retainGraph,
    createGraph,
    allowUnused,
  });
}

function listOf(value: Tensor | readonly Tensor[]): unknown {
  return isTensor(value) ? [value] : value;
}

function gradOutputsOf(
  given: readonly (Tensor | null)[] | undefined,
  count: number,
): (Tensor | null)[] {
  if (given === undefined) return Array.from({ length: count }, () => null);
  const list: unknown = given;
  if (!Array.isArray(list) || list.length !== count) {
    throw new RangeError(
      `grad: gradOutputs must be an array with one entry per output, ${count}, ` +
        `got ${describe(list)}`,
    );
  }
  return [...given];
}
