import { Embedding } from '../../nn/layers/embedding.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { hasRowUpdate } from '../../optim/adam.js';

/**
 * Gives the model's embeddings sparse gradients, which this package's Adam supports: a batch uses few
 * rows of a large vocabulary. A table tied to the generator has a dense gradient anyway. Gradients
 * remain dense for half-precision types, and on devices other than the CPU, where the norm of a
 * gradient that has a row twice would require waiting for the device.
 *
 * @returns a function that restores the previous settings
 */
export function useSparseEmbeddings(model: Transformer): () => void {
  const generatorWeight = model.generator.proj.weight;
  if (generatorWeight.device !== 'cpu') return () => undefined;
  const changed = model
    .modules()
    .filter((module): module is Embedding => module instanceof Embedding)
    .filter(({ weight }) => weight !== generatorWeight && hasRowUpdate(weight))
    .filter(({ sparseGradient }) => !sparseGradient);
  for (const embedding of changed) embedding.sparseGradient = true;
  return () => {
    for (const embedding of changed) embedding.sparseGradient = false;
  };
}
