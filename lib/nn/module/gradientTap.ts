/** Intercepts the gradients of a module's inputs and outputs, for backward hooks. */
import { describe } from '../../runtime/arguments.js';
import { isGradEnabled } from '../../tensor/autograd.js';
import { defineFunction } from '../../tensor/autogradFunction.js';
import { keep } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';

/** One gradient per argument or result; null for those without a gradient. */
export type Gradients = readonly (Tensor | null)[];

export interface GradientTap {
  /** to be passed to `forward` in place of the given inputs */
  readonly inputs: unknown[];
  /** the value to return in place of `forward`'s result */
  output(result: unknown): unknown;
}

/**
 * Intercepts the gradients of one call of `forward`. The gradients of all results arrive together,
 * and so do those of all inputs, since each group passes through one node of the graph.
 *
 * @param owner the module's class, for messages
 * @param run called in each backward pass with both groups; returns the inputs' gradients to use
 * @returns null if gradients are disabled
 */
export function tapGradients(
  owner: string,
  inputs: readonly unknown[],
  run: (gradInputs: Gradients, gradOutputs: Gradients) => Gradients,
): GradientTap | null {
  if (!isGradEnabled()) return null;
  // Kept between the two nodes: the inputs' gradients may be computed in another scope.
  let gradOutputs: Gradients = [];
  const runOnce = (gradInputs: Gradients): Gradients => {
    try {
      return run(gradInputs, gradOutputs);
    } finally {
      forget(gradOutputs);
      gradOutputs = [];
    }
  };
  const [tapped, any] = passedThrough(inputs, runOnce);
  const output = (result: unknown): unknown => {
    const results: readonly unknown[] = Array.isArray(result) ? result : [result];
    checkResults(owner, results, result);
    const [tappedResults] = passedThrough(results, (gradients) => {
      // Frees the gradients of a backward pass that did not reach the inputs.
      forget(gradOutputs);
      gradOutputs = gradients.map((gradient) => gradient && keep(gradient.detach()));
      if (!any) checkNothingReplaced(owner, runOnce(Array<null>(inputs.length).fill(null)));
      return gradients;
    });
    return Array.isArray(result) ? tappedResults : tappedResults[0];
  };
  return { inputs: tapped, output };
}

/** `values` with new tensors for those that require gradients, and whether there are any. */
function passedThrough(
  values: readonly unknown[],
  change: (gradients: Gradients) => Gradients,
): [passed: unknown[], any: boolean] {
  const places = [...values.keys()].filter((place) => {
    const value = values[place];
    return value instanceof Tensor && value.requiresGrad;
  });
  const passed = [...values];
  if (places.length === 0) return [passed, false];
  const passOn = defineFunction({
    name: 'ModuleBackwardHook',
    forward: (_context, ...tensors: Tensor[]) => tensors,
    backward: (_context, ...gradients) => {
      const all = Array<Tensor | null>(values.length).fill(null);
      places.forEach((place, index) => (all[place] = gradients[index] ?? null));
      const changed = change(all);
      return places.map((place) => changed[place] ?? null);
    },
  });
  passOn(...places.map((place) => values[place] as Tensor)).forEach((tensor, index) => {
    passed[places[index] as number] = tensor;
  });
  return [passed, true];
}

function forget(gradients: Gradients): void {
  for (const gradient of gradients) gradient?.dispose();
}

function checkResults(owner: string, results: readonly unknown[], result: unknown): void {
  const fits = results.every((item) => item === null || item instanceof Tensor);
  if (fits) return;
  throw new TypeError(
    `${owner}: with a backward hook, forward must return a tensor or an array of tensors, ` +
      `got ${describe(result)}; register the hook on submodules, or use tensor.registerHook`,
  );
}

function checkNothingReplaced(owner: string, gradInputs: Gradients): void {
  if (gradInputs.every((gradient) => gradient === null)) return;
  throw new TypeError(
    `${owner}: a backward hook returned gradients, but no input of forward requires them`,
  );
}
