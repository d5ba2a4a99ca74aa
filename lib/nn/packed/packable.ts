/** Which models can run on packed sequences. */
import { checkInstance } from '../../runtime/options.js';
import { ModuleList, Sequential } from '../module/containers.js';
import { Decoder, DecoderLayer } from '../model/decoder.js';
import { Dropout } from '../layers/dropout.js';
import { Embedding } from '../layers/embedding.js';
import { Encoder, EncoderLayer } from '../model/encoder.js';
import { Generator } from '../model/generator.js';
import { LayerNorm } from '../layers/layerNorm.js';
import { LearnedPositions } from '../layers/learnedPositions.js';
import { Linear } from '../layers/linear.js';
import type { Module } from '../module/module.js';
import { MultiHeadedAttention } from '../attention/multiHeadedAttention.js';
import { PositionalEncoding } from '../layers/positionalEncoding.js';
import { PositionwiseFeedForward } from '../layers/positionwiseFeedForward.js';
import { RMSNorm } from '../layers/rmsNorm.js';
import { SublayerConnection } from '../model/sublayerConnection.js';
import { Transformer } from '../model/transformer.js';
import { TransformerEmbedding } from '../model/transformerEmbedding.js';

/**
 * Classes whose `forward` is known to treat each token alone, or to know packed sequences. Made at
 * the first call: the classes and this file import each other.
 */
const knownClasses = (): ReadonlySet<unknown> =>
  (classes ??= new Set<unknown>([
    Decoder,
    DecoderLayer,
    Dropout,
    Embedding,
    Encoder,
    EncoderLayer,
    Generator,
    LayerNorm,
    LearnedPositions,
    Linear,
    ModuleList,
    MultiHeadedAttention,
    PositionalEncoding,
    PositionwiseFeedForward,
    RMSNorm,
    Sequential,
    SublayerConnection,
    Transformer,
    TransformerEmbedding,
  ]));

let classes: Set<unknown> | undefined;

/**
 * Whether `model.forwardPacked` computes what `model.forward` does on the padded batch. Not so for
 * subclasses and other modules of a user's, for modules with hooks (which expect `[B, S, …]`),
 * rotary positions, and kept attention weights.
 */
export function isPackable(model: Transformer): boolean {
  checkInstance('isPackable', 'model', model, Transformer, 'makeModel');
  return packingObstacle(model) === null;
}

/** What keeps a model from running on packed sequences, in words; null: nothing. @internal */
export function packingObstacle(model: Transformer): string | null {
  if (!(model.srcEmbed instanceof Sequential && model.tgtEmbed instanceof Sequential)) {
    return 'an embedding that is no Sequential';
  }
  const methods = ['encode', 'decode', 'forwardPacked'] as const;
  for (const method of methods) {
    if (model[method] !== Transformer.prototype[method]) return `a method ${method} of its own`;
  }
  for (const module of model.modules()) {
    const obstacle = obstacleIn(module);
    if (obstacle !== null) return obstacle;
  }
  return null;
}

function obstacleIn(module: Module): string | null {
  const { constructor } = module;
  if (!knownClasses().has(constructor)) return `the module ${constructor.name}`;
  // Hooks hide the forward of the class.
  if (module.forward !== (constructor.prototype as Module).forward) {
    return `hooks or a forward of its own in ${constructor.name}`;
  }
  return module instanceof MultiHeadedAttention ? module.packingObstacle : null;
}
