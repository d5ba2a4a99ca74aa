/** Modules, masks and losses: everything that models are built from. */
export { attention, type AttentionOptions } from './attention.js';
export { attentionMaps, type AttentionMaps, type AttentionMapsInput } from './attentionMaps.js';
export { clone, clones } from './clones.js';
export { ModuleList, Sequential, type NamedModules } from './containers.js';
export { Decoder, DecoderLayer } from './decoder.js';
export { Dropout } from './dropout.js';
export { Embedding } from './embedding.js';
export { Encoder, EncoderLayer } from './encoder.js';
export { Generator } from './generator.js';
export type { BackwardHook, ForwardHook, ForwardPreHook, HookOptions } from './hooks.js';
/** Initial values for parameters, in place: uniform, normal, constant, Xavier's and Kaiming's. */
export * as init from './init.js';
export { LayerNorm, type LayerNormOptions } from './layerNorm.js';
export { type AttentionModule, type LayerOptions, type StackOptions } from './layerStack.js';
export { LearnedPositions, type LearnedPositionsOptions } from './learnedPositions.js';
export { Linear, type LinearOptions } from './linear.js';
export {
  linearCrossEntropy,
  type LinearCrossEntropy,
  type LinearCrossEntropyOptions,
} from './linearCrossEntropy.js';
export {
  StateDictError,
  type LoadStateOptions,
  type LoadStateResult,
  type StateSource,
} from './loadState.js';
export { crossEntropy, CrossEntropyLoss, type CrossEntropyOptions } from './loss.js';
export { makeModel } from './makeModel.js';
export {
  booleanMask,
  combineMasks,
  fromAdditiveMask,
  paddingMask,
  subsequentMask,
  targetMask,
  type EmptyRows,
} from './mask.js';
export {
  type BiasOptions,
  type ModelConfig,
  type ModelOptions,
  type Positions,
  type Tie,
  type VocabSize,
} from './modelOptions.js';
export { Module, type BufferForm, type TensorModule } from './module.js';
export { ModuleDict } from './moduleDict.js';
export type { NamedOptions } from './moduleTree.js';
export type { FloatingDType, ModuleTarget } from './moveModule.js';
export { MultiHeadedAttention, type MultiHeadedAttentionOptions } from './multiHeadedAttention.js';
export { type Norm, type NormConfig, type NormNames, type NormOptions } from './norm.js';
export { PackedMask, PackedSequences } from './packedSequences.js';
export { isPackable } from './packable.js';
export { Buffer, Parameter } from './parameter.js';
export type { ModuleClass } from './paths.js';
export {
  PositionalEncoding,
  type PositionalEncodingOptions,
  type PositionFormula,
} from './positionalEncoding.js';
export {
  PositionwiseFeedForward,
  type Activation,
  type PositionwiseFeedForwardOptions,
} from './positionwiseFeedForward.js';
export { RMSNorm, type RMSNormOptions } from './rmsNorm.js';
export { RotaryPositions, type RotaryPositionsOptions } from './rotaryPositions.js';
export {
  SublayerConnection,
  type NormOrder,
  type Sublayer,
  type SublayerConnectionOptions,
} from './sublayerConnection.js';
export { Transformer, type PackedInput } from './transformer.js';
export { TransformerEmbedding } from './transformerEmbedding.js';
