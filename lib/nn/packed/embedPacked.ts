/** Embeds packed ids. */
import { checkProbability } from '../../runtime/arguments.js';
import { callTensor } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkIds, checkSameDevice } from '../check.js';
import type { Sequential } from '../module/containers.js';
import { Embedding } from '../layers/embedding.js';
import { checkIdRange, placeIn } from '../idRange.js';
import { LearnedPositions } from '../layers/learnedPositions.js';
import type { PackedSequences } from './packedSequences.js';
import { PositionalEncoding } from '../layers/positionalEncoding.js';
import { TransformerEmbedding } from '../model/transformerEmbedding.js';

/**
 * Applies the modules of an embedding to packed ids one after another; only position modules need
 * the position of each row. For a model without a packing obstacle, whose modules have no hooks and
 * no user-defined forward.
 *
 * @param embed maps ids `[tokens]` to `[tokens, dModel]`
 * @param name the caller's name for the ids, for messages
 * @internal
 */
export function embedPacked(
  embed: Sequential,
  name: string,
  ids: Tensor,
  sequences: PackedSequences,
): Tensor {
  const [first, second, ...others] = embed;
  const table = first instanceof TransformerEmbedding ? first.embedding : first;
  if (table instanceof Embedding) {
    checkIdRange('Embedding', name, ids, table.count, placeIn(sequences));
  }
  if (first instanceof TransformerEmbedding && isTable(second) && others.length === 0) {
    const atOnce = embedAtOnce(first, second, ids, sequences);
    if (atOnce !== null) return atOnce;
  }
  let rows = ids;
  for (const part of embed) {
    rows = isTable(part) ? part.forwardPacked(rows, sequences) : part.forward(rows);
  }
  return rows;
}

function isTable(part: unknown): part is PositionalEncoding | LearnedPositions {
  return part instanceof PositionalEncoding || part instanceof LearnedPositions;
}

/** Both modules in one op; null if one of them would reject its input. */
function embedAtOnce(
  { embedding, dModel }: TransformerEmbedding,
  { pe, maxLen, dropout }: PositionalEncoding | LearnedPositions,
  ids: Tensor,
  sequences: PackedSequences,
): Tensor | null {
  const { weight } = embedding;
  const fits =
    embedding.constructor === Embedding &&
    ids.shape[0] === sequences.tokens &&
    sequences.longest <= maxLen &&
    weight.shape[1] === pe.shape[2] &&
    weight.dtype === pe.dtype &&
    weight.device === pe.device;
  if (!fits) return null;
  checkIds('Embedding', 'ids', ids);
  checkSameDevice('Embedding', 'ids', ids, 'the weights', weight);
  const probability = checkProbability('Dropout', 'p', dropout.activeProbability);
  return callTensor(
    'torchformer::embed',
    weight,
    ids,
    Math.sqrt(dModel),
    pe.squeeze(0),
    sequences.positions,
    probability,
    { sparse_grad: embedding.sparseGradient },
  );
}
