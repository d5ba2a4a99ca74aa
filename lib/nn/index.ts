/** Modules, masks and losses: everything that models are built from. */
export { attention, type AttentionOptions } from './attention.js';
export { clone, clones } from './clones.js';
export { ModuleList, Sequential } from './containers.js';
export { Decoder, DecoderLayer } from './decoder.js';
export { Dropout } from './dropout.js';
export { Embedding } from './embedding.js';
export { Encoder, EncoderLayer, type AttentionModule, type LayerOptions } from './encoder.js';
export { Generator } from './generator.js';
export * as init from './init.js';
export { LayerNorm, type LayerNormOptions } from './layerNorm.js';
export { Linear, type LinearOptions } from './linear.js';
export {
  StateDictError,
  type LoadStateOptions,
  type LoadStateResult,
  type StateSource,
} from './loadState.js';
export { crossEntropy, CrossEntropyLoss, type CrossEntropyOptions } from './loss.js';
export { makeModel, type ModelConfig, type ModelOptions } from './makeModel.js';
export {
  booleanMask,
  combineMasks,
  fromAdditiveMask,
  paddingMask,
  subsequentMask,
  targetMask,
  type EmptyRows,
} from './mask.js';
export { Module, type BufferForm, type ModuleTarget, type TensorModule } from './module.js';
export { MultiHeadedAttention, type MultiHeadedAttentionOptions } from './multiHeadedAttention.js';
export { Buffer, Parameter } from './parameter.js';
export { PositionalEncoding, type PositionalEncodingOptions } from './positionalEncoding.js';
export {
  PositionwiseFeedForward,
  type PositionwiseFeedForwardOptions,
} from './positionwiseFeedForward.js';
export { SublayerConnection, type SublayerConnectionOptions } from './sublayerConnection.js';
export { Transformer } from './transformer.js';
export { TransformerEmbedding } from './transformerEmbedding.js';
