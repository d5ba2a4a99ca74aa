import { Embedding } from '../../nn/layers/embedding.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { hasRowUpdate } from '../../optim/adam.js';
import { Optimizer } from '../../optim/optimizer.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { TrainingOptimizer } from '../trainerOptions.js';

/**
 * Gives the model's embeddings sparse gradients, which Adam and Adafactor support: a batch uses few
 * rows of a large vocabulary. A table tied to the generator has a dense gradient anyway. Gradients
 * remain dense where the optimizer would make them so, such as with weight decay in Adam, for
 * half-precision types, and on devices other than the CPU, where the norm of a gradient that has a row
 * twice would require waiting for the device.
 *
 * @param optimizer default: Adam without weight decay
 * @returns a function that restores the previous settings
 */
export function useSparseEmbeddings(model: Transformer, optimizer?: TrainingOptimizer): () => void {
  const generatorWeight = model.generator.proj.weight;
  if (generatorWeight.device !== 'cpu') return () => undefined;
  const changed = model
    .modules()
    .filter((module): module is Embedding => module instanceof Embedding)
    .filter(({ weight }) => weight !== generatorWeight && takesRows(weight, optimizer))
    .filter(({ sparseGradient }) => !sparseGradient);
  for (const embedding of changed) embedding.sparseGradient = true;
  return () => {
    for (const embedding of changed) embedding.sparseGradient = false;
  };
}

function takesRows(weight: Tensor, optimizer: TrainingOptimizer | undefined): boolean {
  if (optimizer === undefined) return hasRowUpdate(weight);
  return optimizer instanceof Optimizer && optimizer.updatesRowsOf(weight);
}
