/** Fine-tuning with low-rank updates of linear layers (Hu et al. 2021). */
import { checkInstance, checkOptions, orDefault } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Linear } from '../layers/linear.js';
import {
  checkedLoraSettings,
  LoraLinear,
  loraSettingNames,
  type LoraSettings,
} from '../layers/loraLinear.js';
import { matchingNames, type NamePatterns } from '../module/namePatterns.js';
import { Module } from '../module/module.js';
import { replaceModule } from '../module/replaceModule.js';
import { tiesOf, type Ties } from '../module/ties.js';

/** Options of {@link applyLora}. */
export interface LoraOptions extends LoraSettings {
  /**
   * names of the linear layers to update, as in `namedModules()`, with `*` for any characters, or regular
   * expressions; default `['*.linears.0', '*.linears.2']`, the projections of queries and values of all
   * attention (the paper, section 7.1)
   */
  targets?: NamePatterns;
}

const defaultTargets = ['*.linears.0', '*.linears.2'];

/**
 * Replaces linear layers of a model by {@link LoraLinear} layers that share their weights, and freezes
 * everything else: the trainable parameters are the matrices A and B alone. Outputs do not change until
 * they are trained. Call it before the optimizer or the `Trainer` is created.
 *
 * ```ts
 * applyLora(model, { rank: 8, alpha: 16, dropout: 0.05 });
 * applyLora(model, { targets: ['*.linears.*', '*.feed_forward.*'] });
 * ```
 *
 * The model runs packed as before, but with LoRA layers it is decoded by its modules and not by native
 * code: call {@link mergeLora} after training.
 *
 * @returns the names of the replaced layers
 * @throws RangeError if a pattern matches no linear layer, or a layer's weight is tied to another
 *   parameter, which the update would change too; TypeError if a layer has hooks or is of another class,
 *   or the model has LoRA layers. Nothing has changed then
 */
export function applyLora(model: Module, options: LoraOptions = {}): string[] {
  const owner = 'applyLora';
  checkInstance(owner, 'model', model, Module, 'makeModel');
  checkOptions(owner, options, ['targets', ...loraSettingNames]);
  const settings = checkedLoraSettings(owner, options);
  const { targets } = options;
  const names = matchingNames(
    owner,
    'targets',
    'linear layer',
    orDefault(targets, defaultTargets),
    linearNames(model),
  );
  addLora(owner, model, new Map(names.map((name) => [name, settings])));
  return names;
}

/**
 * Puts LoRA layers in the place of these linear layers, and freezes everything else.
 *
 * @throws RangeError, TypeError as {@link applyLora}; nothing has changed then
 * @internal
 */
export function addLora(
  owner: string,
  model: Module,
  layers: ReadonlyMap<string, LoraSettings>,
): void {
  const [present] = loraLayers(model);
  if (present !== undefined) {
    throw new TypeError(
      `${owner}: the model already has LoRA layers, such as ${present[0]}; call mergeLora(model) first`,
    );
  }
  const ties = tiesOf(model);
  for (const name of layers.keys()) checkTarget(owner, model, name, ties);
  model.requiresGrad_(false);
  for (const parameter of model.parameters()) parameter.grad = null;
  for (const [name, settings] of layers) {
    const linear = model.getSubmodule(name, Linear);
    replaceModule(model, name, LoraLinear.over(linear, settings));
  }
}

/**
 * Adds the updates of all LoRA layers to their weights and puts plain linear layers in their place: the
 * result is an ordinary model again, which computes the same, saves and loads without LoRA, and is
 * decoded by native code. Its parameters are the same objects, and stay frozen: `unfreeze(model)` makes
 * them trainable.
 *
 * @returns the names of the merged layers
 * @throws TypeError if the model has no LoRA layer, or one of them has hooks; nothing has changed then
 */
export function mergeLora(model: Module): string[] {
  const owner = 'mergeLora';
  const layers = checkedLoraLayers(owner, model);
  for (const [name, layer] of layers) checkWithoutHooks(owner, name, layer, LoraLinear);
  for (const [name, layer] of layers) replaceModule(model, name, layer.merged());
  return layers.map(([name]) => name);
}

/**
 * The matrices A and B of all LoRA layers by name: `encoder.layers.0.self_attn.linears.0.lora_A.weight`.
 * As in `stateDict()`, the values are views. `saveLora` and `loadLora` store them with their settings.
 *
 * @throws TypeError if the model has no LoRA layer
 */
export function loraStateDict(model: Module): Map<string, Tensor> {
  const state = new Map<string, Tensor>();
  for (const [name, { loraA, loraB }] of checkedLoraLayers('loraStateDict', model)) {
    state.set(`${name}.lora_A.weight`, loraA.weight.detach());
    state.set(`${name}.lora_B.weight`, loraB.weight.detach());
  }
  return state;
}

/** The LoRA layers of a model with their names. @throws TypeError if there are none @internal */
export function checkedLoraLayers(owner: string, model: Module): [string, LoraLinear][] {
  checkInstance(owner, 'model', model, Module, 'makeModel');
  const layers = loraLayers(model);
  if (layers.length > 0) return layers;
  throw new TypeError(`${owner}: the model has no LoRA layers; applyLora(model) adds them`);
}

/** The LoRA layers of a model with their names; none without. @internal */
export function loraLayers(model: Module): [string, LoraLinear][] {
  return model
    .namedModules()
    .filter((entry): entry is [string, LoraLinear] => entry[1] instanceof LoraLinear);
}

/** The linear layers of a model, under all names; A and B of LoRA layers are not among them. */
function linearNames(model: Module): string[] {
  const named = model.namedModules({ removeDuplicate: false });
  const parts = new Set(loraLayers(model).flatMap(([, { loraA, loraB }]) => [loraA, loraB]));
  return named
    .filter(([name, module]) => name !== '' && module instanceof Linear && !parts.has(module))
    .map(([name]) => name);
}

function checkTarget(owner: string, model: Module, name: string, ties: Ties): void {
  const linear = model.getSubmodule(name, Linear);
  checkWithoutHooks(owner, name, linear, Linear);
  const tied = ties.find((names) => names.includes(`${name}.weight`));
  if (tied === undefined) return;
  const others = tied.filter((other) => other !== `${name}.weight`);
  throw new RangeError(
    `${owner}: the weight of ${name} is tied to ${others.join(', ')}, which the merged update would ` +
      'change too; leave it out of targets, or give the layer a weight of its own',
  );
}

function checkWithoutHooks(
  owner: string,
  name: string,
  module: Linear,
  type: { readonly name: string; readonly prototype: { readonly forward: unknown } },
): void {
  const ownClass: unknown = module.constructor;
  if (ownClass !== type) {
    throw new TypeError(
      `${owner}: ${name} is a ${module.constructor.name}, whose own forward would be lost; ` +
        `only a plain ${type.name} can be replaced`,
    );
  }
  if (module.forward === type.prototype.forward) return;
  throw new TypeError(
    `${owner}: ${name} has hooks or a user-defined forward, which would be lost; remove them first`,
  );
}
