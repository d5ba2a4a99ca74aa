/** Gradients: enabling and disabling their recording, and computing them. */
import { checkBoolean, checkFunction, checkOptions, describe } from '../runtime/arguments.js';
import { checkTensor, checkTensors, formatShape } from './check.js';
import { native } from './dispatch.js';
import type { BackwardOptions as NativeBackwardOptions } from './native.js';
import { refusePromise } from './scope.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/** Options of {@link Tensor.backward} and {@link Tensor.backwardAsync}. */
export interface BackwardOptions {
  /** Upstream gradient with the tensor's shape. Default 1, for tensors with one element. */
  gradient?: Tensor;
  /** Keep the graph for another backward pass. Default: the value of `createGraph`. */
  retainGraph?: boolean;
  /** Record the computation of the gradients, for higher-order gradients. Default false. */
  createGraph?: boolean;
  /** Accumulate gradients only into these leaves. Default: all. */
  inputs?: readonly Tensor[];
}

/** Options of {@link grad}. */
export interface GradOptions {
  /** Upstream gradients, one per output; null for 1. Default: all null. */
  gradOutputs?: readonly (Tensor | null)[];
  /** Keep the graph for another backward pass. Default: the value of `createGraph`. */
  retainGraph?: boolean;
  /** Record the computation of the gradients, for higher-order gradients. Default false. */
  createGraph?: boolean;
  /** Return null for inputs that the outputs do not depend on. Default false: throw. */
  allowUnused?: boolean;
}

/** Whether operations are recorded for gradients. */
export function isGradEnabled(): boolean {
  return native().gradMode();
}

/**
 * Runs `fn` without recording operations for gradients; returns its result.
 *
 * @throws TypeError if `fn` is async: the mode is set for the thread and ends with this call.
 *   Native jobs keep the mode in which they were started, so this works:
 *   `const [job] = noGrad(() => [callAsync(…)]); await job;`
 */
export function noGrad<T>(fn: () => T): T {
  return withGradMode('noGrad', false, fn);
}

/** Runs `fn` with recording enabled inside {@link noGrad}. @throws TypeError if `fn` is async */
export function enableGrad<T>(fn: () => T): T {
  return withGradMode('enableGrad', true, fn);
}

const asyncHint = (owner: string): string =>
  `its code after an await would run outside ${owner}; wrap each synchronous part, and start ` +
  `native jobs inside: const [job] = ${owner}(() => [callAsync(…)]); await job`;

function withGradMode<T>(owner: string, enabled: boolean, fn: () => T): T {
  checkFunction(owner, 'fn', fn);
  if (Object.prototype.toString.call(fn) === '[object AsyncFunction]') {
    throw new TypeError(`${owner}: fn is async, but ${asyncHint(owner)}`);
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
  refusePromise(result, `${owner}: fn returned a Promise, but ${asyncHint(owner)}`);
  return result;
}

/** Checks the arguments of a backward pass and converts them for native code. */
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

/** @throws TypeError, RangeError unless `gradient` matches `tensor` */
function checkUpstream(
  owner: string,
  name: string,
  what: string,
  tensor: Tensor,
  gradient: Tensor | null,
): void {
  if (!tensor.requiresGrad) {
    throw new TypeError(
      `${owner}: ${what} does not depend on anything that requires gradients; set requiresGrad ` +
        'on its inputs, and check that it was not computed inside noGrad',
    );
  }
  if (gradient === null) {
    if (tensor.numel === 1) return;
    throw new RangeError(
      `${owner}: ${name} is required because ${what} has shape ${formatShape(tensor.shape)}; ` +
        'pass one, or reduce to one element, as in loss.sum()',
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

/** Implements `tensor.backward(options)`. @internal */
export function runBackward(tensor: Tensor, options: BackwardOptions): void {
  native().backward(...backwardArguments(tensor, options));
}

/** Implements `tensor.backwardAsync(options)`. @internal */
export async function runBackwardAsync(tensor: Tensor, options: BackwardOptions): Promise<void> {
  await native().backwardAsync(...backwardArguments(tensor, options));
}

/**
 * Returns the gradients of the sum of `outputs` with respect to `inputs`, in the order of `inputs`;
 * does not change any `.grad`.
 *
 * @throws TypeError, RangeError for invalid arguments; TorchError if an input is not part of the
 *   graph and `allowUnused` is false
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
