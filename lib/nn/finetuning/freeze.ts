/** Chooses which parameters of a model are trained. */
import { checkInstance } from '../../runtime/arguments.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import { matchingNames, type NamePatterns } from '../module/namePatterns.js';
import { Module } from '../module/module.js';

/**
 * Freezes parameters: they get no gradient, and no optimizer changes them. Call it before the optimizer
 * or the `Trainer` is created, which take the trainable parameters.
 *
 * ```ts
 * freeze(model, 'encoder.*'); // all parameters of the encoder
 * freeze(model, ['*_embed.*', /layers\.[01]\./]); // both embeddings, and the first two layers
 * ```
 *
 * Dropout in a frozen part stays active; `model.encoder.eval()` turns it off there.
 *
 * @param patterns names of parameters as in `namedParameters()`, with `*` for any characters, or regular
 *   expressions
 * @returns all names of the frozen parameters, also those of a tied parameter that match no pattern
 * @throws RangeError if a pattern matches no parameter; nothing has changed then
 * @throws TypeError if `model` is not a Module or a pattern is neither a string nor a RegExp
 */
export function freeze(model: Module, patterns: NamePatterns): string[] {
  return setTrainable('freeze', model, patterns, false);
}

/**
 * Makes parameters trainable again; see {@link freeze}.
 *
 * @param patterns default: all parameters
 * @returns all names of the parameters that match
 * @throws RangeError if a pattern matches no parameter; TypeError if a parameter has an integer dtype, or
 *   as {@link freeze}. Nothing has changed then
 */
export function unfreeze(model: Module, patterns: NamePatterns = '*'): string[] {
  return setTrainable('unfreeze', model, patterns, true);
}

function setTrainable(
  owner: string,
  model: Module,
  patterns: NamePatterns,
  isTrainable: boolean,
): string[] {
  checkInstance(owner, 'model', model, Module, 'makeModel');
  const named = model.namedParameters({ removeDuplicate: false });
  const names = named.map(([name]) => name);
  const matching = new Set(matchingNames(owner, 'pattern', 'parameter', patterns, names));
  const chosen = new Set(
    named.flatMap(([name, parameter]) => (matching.has(name) ? [parameter] : [])),
  );
  const changed = named.filter(([, parameter]) => chosen.has(parameter));
  const integers = changed.find(([, { dtype }]) => !isFloatingPoint(dtype));
  if (isTrainable && integers !== undefined) {
    throw new TypeError(
      `${owner}: parameter "${integers[0]}" is ${integers[1].dtype}, which has no gradient`,
    );
  }
  for (const parameter of chosen) {
    parameter.requiresGrad = isTrainable;
    // An optimizer would apply the gradient of an earlier step.
    if (!isTrainable) parameter.grad = null;
  }
  return changed.map(([name]) => name);
}
