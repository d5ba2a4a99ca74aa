/** The initial weights that all participants share. */
import { makeModel, manualSeed, writeSafetensors } from 'torchformer';
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
