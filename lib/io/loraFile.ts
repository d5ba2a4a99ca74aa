/** The low-rank updates of a model as a small file. */
import type { LoraSettings } from '../nn/layers/loraLinear.js';
import { Linear } from '../nn/layers/linear.js';
import { addLora, checkedLoraLayers, loraStateDict } from '../nn/finetuning/lora.js';
import { Module } from '../nn/module/module.js';
import { checkInstance, checkPath } from '../runtime/arguments.js';
import { formatShape } from '../tensor/check.js';
import { readSafetensors, writeSafetensors, type SafetensorsFile } from './safetensors.js';
import { checkpointFault } from './safetensorsHeader.js';

/** Key of the settings in the header. */
const settingsKey = 'lora';

/**
 * Saves the matrices A and B of all LoRA layers, with their settings, as a safetensors file: the fine-tuned
 * part of a model, usually less than a hundredth of it. The file is replaced atomically.
 *
 * @throws TypeError if `path` is not a path, or the model has no LoRA layer
 * @throws TorchError ERR_CHECKPOINT if the file cannot be saved
 */
export async function saveLora(path: string, model: Module): Promise<void> {
  checkPath('saveLora', 'path', path);
  const layers = checkedLoraLayers('saveLora', model);
  const settings = Object.fromEntries(
    layers.map(([name, { rank, alpha, dropout }]) => [name, { rank, alpha, dropout: dropout.p }]),
  );
  const state = loraStateDict(model);
  try {
    await writeSafetensors(path, state, { format: 'pt', [settingsKey]: JSON.stringify(settings) });
  } finally {
    for (const tensor of state.values()) tensor.dispose();
  }
}

/**
 * Puts the LoRA layers of a file written by {@link saveLora} into a model, the one that was fine-tuned or
 * a copy of it; everything else is frozen, as by `applyLora`. `mergeLora(model)` then makes an ordinary
 * model of it.
 *
 * @returns the names of the layers
 * @throws TypeError if `model` is not a Module or has LoRA layers; RangeError if a weight is tied
 * @throws TorchError ERR_CHECKPOINT if the file cannot be read, or its layers do not fit the model, which
 *   is then unchanged
 */
export async function loadLora(path: string, model: Module): Promise<string[]> {
  checkPath('loadLora', 'path', path);
  checkInstance('loadLora', 'model', model, Module, 'makeModel');
  const file = await readSafetensors(path);
  const state = new Map<string, Awaited<ReturnType<SafetensorsFile['tensor']>>>();
  try {
    const layers = settingsIn(file);
    for (const [name, { rank }] of layers) checkFits(file, model, name, rank as number);
    for (const name of file.names) state.set(name, await file.tensor(name));
    addLora('loadLora', model, layers);
    model.loadStateDict(state, { strict: false });
    return [...layers.keys()];
  } finally {
    await file.close();
    for (const tensor of state.values()) tensor.dispose();
  }
}

function settingsIn(file: SafetensorsFile): Map<string, LoraSettings> {
  const text = file.metadata[settingsKey];
  if (text === undefined) {
    throw checkpointFault(
      file.path,
      'its header has no settings of LoRA; was it saved by saveLora?',
    );
  }
  let settings: unknown;
  try {
    settings = JSON.parse(text);
  } catch (error) {
    throw checkpointFault(file.path, 'the settings of LoRA in its header are not JSON', error);
  }
  if (typeof settings !== 'object' || settings === null || Object.keys(settings).length === 0) {
    throw checkpointFault(file.path, 'the settings of LoRA in its header name no layer');
  }
  return new Map(
    Object.entries(settings as Record<string, LoraSettings | null>).map(([name, layer]) => {
      const { rank, alpha, dropout } = layer ?? {};
      const areValid =
        isPositive(rank) && Number.isInteger(rank) && isPositive(alpha) && isShare(dropout);
      if (areValid) return [name, { rank, alpha, dropout }];
      throw checkpointFault(
        file.path,
        `wrong settings of LoRA for ${name}: ${JSON.stringify(layer)}`,
      );
    }),
  );
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value < Infinity;
}

function isShare(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

/** @throws TorchError ERR_CHECKPOINT unless the model has a linear layer for these matrices */
function checkFits(file: SafetensorsFile, model: Module, name: string, rank: number): void {
  let linear: Linear;
  try {
    linear = model.getSubmodule(name, Linear);
  } catch (error) {
    throw checkpointFault(file.path, (error as Error).message, error);
  }
  const expected = { lora_A: [rank, linear.inFeatures], lora_B: [linear.outFeatures, rank] };
  for (const [part, shape] of Object.entries(expected)) {
    const given = file.info(`${name}.${part}.weight`).shape;
    if (formatShape(given) === formatShape(shape)) continue;
    throw checkpointFault(
      file.path,
      `${name}.${part}.weight is ${formatShape(given)}, the model needs ${formatShape(shape)}`,
    );
  }
}
