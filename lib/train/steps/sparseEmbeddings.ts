import { Embedding } from '../../nn/layers/embedding.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { hasRowUpdate } from '../../optim/adam.js';

/**
 * Gives the model's embeddings sparse gradients, as our Adam takes them: a batch uses few rows of a
 * large vocabulary. A table that is tied to the generator has a dense gradient anyway; half types keep
 * theirs, and other devices than the CPU, where the norm of a gradient that holds a row twice would
 * have to be waited for.
 *
 * @returns puts back what was set before
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
