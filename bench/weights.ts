/** The weights that all participants share. */
import {
  makeModel,
  manualSeed,
  readSafetensors,
  writeSafetensors,
  type Transformer,
} from 'torchformer';
import type { ModelSize } from './sizes.js';

/** Writes the weights of a new model. @returns the number of its parameters */
export async function writeWeights(
  { vocabSize, ...widths }: ModelSize,
  file: string,
): Promise<number> {
  manualSeed(1);
  const model = makeModel(vocabSize, widths);
  await writeSafetensors(file, model.stateDict());
  return model.parameters().reduce((sum, { numel }) => sum + numel, 0);
}

/** Loads weights from a file into a model. */
export async function loadWeights(model: Transformer, file: string): Promise<void> {
  await using stored = await readSafetensors(file);
  const tensors = await stored.tensors();
  model.loadStateDict(tensors);
  for (const tensor of tensors.values()) tensor.dispose();
}
