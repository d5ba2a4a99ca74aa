/** Which models can run on packed sequences. */
import { ModuleList, Sequential } from './containers.js';
import { Decoder, DecoderLayer } from './decoder.js';
import { Dropout } from './dropout.js';
import { Embedding } from './embedding.js';
import { Encoder, EncoderLayer } from './encoder.js';
import { Generator } from './generator.js';
import { LayerNorm } from './layerNorm.js';
import { LearnedPositions } from './learnedPositions.js';
import { Linear } from './linear.js';
import type { Module } from './module.js';
import { MultiHeadedAttention } from './multiHeadedAttention.js';
import { PositionalEncoding } from './positionalEncoding.js';
import { PositionwiseFeedForward } from './positionwiseFeedForward.js';
import { RMSNorm } from './rmsNorm.js';
import { SublayerConnection } from './sublayerConnection.js';
import { Transformer } from './transformer.js';
import { TransformerEmbedding } from './transformerEmbedding.js';

/** Classes whose `forward` is known to treat each token alone, or to know packed sequences. */
const knownClasses: ReadonlySet<unknown> = new Set([
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
]);

/**
 * Whether `model.forwardPacked` computes what `model.forward` does on the padded batch. Not so for
 * subclasses and other modules of a user's, for modules with hooks (which expect `[B, S, …]`),
 * rotary positions, kept attention weights, and on other devices than the CPU.
 */
export function isPackable(model: Transformer): boolean {
  return (
    model.srcEmbed instanceof Sequential &&
    model.tgtEmbed instanceof Sequential &&
    model.modules().every(takesPackedRows) &&
    model.generator.proj.weight.device === 'cpu'
  );
}

function takesPackedRows(module: Module): boolean {
  const { constructor } = module;
  if (!knownClasses.has(constructor)) return false;
  // Hooks hide the forward of the class.
  if (module.forward !== (constructor.prototype as Module).forward) return false;
  if (module instanceof MultiHeadedAttention) {
    return module.rotary === null && !module.keepAttention;
  }
  return true;
}
