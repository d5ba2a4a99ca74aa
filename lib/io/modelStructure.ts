/** The structure of a saved model, and whether another model has the same structure. */
import { tiesOfConfig } from '../nn/model/makeModel.js';
import type { ModelConfig } from '../nn/model/modelOptions.js';
import type { Transformer } from '../nn/model/transformer.js';
import { tiesOf, type Ties } from '../nn/module/ties.js';
import type { ModelFolderConfig } from './modelConfig.js';
import { checkpointFault } from './safetensorsHeader.js';

type Structure = Pick<ModelFolderConfig, 'model' | 'ties' | 'ownModules'>;

/**
 * Returns the settings of a model to save, and where the model differs from what `makeModel` creates
 * from them.
 *
 * @throws TypeError if the model cannot be saved
 */
export function structureOf(owner: string, model: Transformer): Structure {
  if (model.config === null) {
    throw new TypeError(
      `${owner}: the model was not made by makeModel, so its settings are unknown; ` +
        'save its weights with writeSafetensors(path, model.stateDict())',
    );
  }
  let ties: Ties;
  try {
    ties = tiesOf(model);
  } catch (error) {
    throw new TypeError(`${owner}: ${(error as Error).message}`, { cause: error });
  }
  return {
    model: model.config,
    ties: same(ties, tiesOfConfig(model.config)) ? null : ties,
    // Settings assigned by the user do not describe the model.
    ownModules: model.blueprint?.differences(model) ?? [''],
  };
}

const warned = new WeakSet<Transformer>();

/** Warns once per model that its folder alone is not enough to load it. */
export function warnOfOwnModules(model: Transformer, ownModules: readonly string[]): void {
  if (ownModules.length === 0 || warned.has(model)) return;
  warned.add(model);
  process.emitWarning(
    `saveModel: ${differingFrom(ownModules)} what makeModel creates. The weights are saved, but to ` +
      'load them, build the same model and pass it: loadModel(folder, { model })',
    { type: 'TorchWarning', code: 'TORCHFORMER_OWN_MODULES' },
  );
}

/** @throws TorchError ERR_CHECKPOINT if the folder needs a model to load into */
export function refuseOwnModules(configPath: string, { ownModules }: ModelFolderConfig): void {
  if (ownModules.length === 0) return;
  throw checkpointFault(
    configPath,
    `${differingFrom(ownModules)} what makeModel creates; ` +
      'build the model as it was when saved and pass it: loadModel(folder, { model })',
  );
}

function differingFrom(names: readonly string[]): string {
  const shown = names.slice(0, 3).map((name) => (name === '' ? 'the model itself' : `"${name}"`));
  const more = names.length > 3 ? ` and ${names.length - 3} more` : '';
  return `${shown.join(', ')}${more} ${names.length === 1 ? 'differs' : 'differ'} from`;
}

/**
 * Settings that may differ in the given model: they do not change what it computes from the weights, or
 * the shapes and ties of the weights show the difference.
 */
const freeSettings: readonly (keyof ModelConfig)[] = [
  'dropout',
  'attentionDropout',
  'maxLen',
  'vocabSize',
  'tie',
];

/**
 * Checks that the weights of the folder have the same meaning in `model` as in the saved model, beyond
 * what their names and shapes show.
 *
 * @throws TorchError ERR_CHECKPOINT naming what differs
 */
export function checkGivenModel(
  configPath: string,
  config: ModelFolderConfig,
  model: Transformer,
): void {
  for (const name of Object.keys(config.model) as (keyof ModelConfig)[]) {
    if (model.config === null || freeSettings.includes(name)) continue;
    const [saved, given] = [config.model[name], model.config[name]];
    if (same(saved, given)) continue;
    throw checkpointFault(
      configPath,
      `the saved model has ${name} ${JSON.stringify(saved)}, the given model ${JSON.stringify(given)}`,
    );
  }
  checkSameOwnModules(configPath, config.ownModules, model);
  const [saved, given] = [config.ties ?? tiesOfConfig(config.model), tiesOf(model)];
  if (same(saved, given)) return;
  throw checkpointFault(
    configPath,
    `the saved model has ${tied(saved)}, the given model ${tied(given)}: tie them in the same way`,
  );
}

/** Of a model that was not made by `makeModel`, it is unknown which modules are user-defined. */
function checkSameOwnModules(
  configPath: string,
  saved: readonly string[],
  model: Transformer,
): void {
  const given = model.blueprint?.differences(model);
  if (given === undefined || same([...saved].sort(), [...given].sort())) return;
  const list = (names: readonly string[]) =>
    names.length === 0 ? 'nothing' : names.map((name) => JSON.stringify(name)).join(', ');
  throw checkpointFault(
    configPath,
    `the saved model differs from what makeModel creates in ${list(saved)}, the given model in ` +
      `${list(given)}: replace the same modules`,
  );
}

function tied(ties: Ties): string {
  if (ties.length === 0) return 'no tied parameters';
  return `tied ${ties.map((names) => names.map((name) => `"${name}"`).join(' = ')).join(', ')}`;
}

/** Compares plain JSON whose keys have a fixed order, as in configs. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
