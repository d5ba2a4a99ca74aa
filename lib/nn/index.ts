/** Modules, masks and losses: everything that models are built from. */
export { attention, type AttentionOptions } from './attention/attention.js';
export {
  attentionMaps,
  type AttentionMaps,
  type AttentionMapsInput,
} from './model/attentionMaps.js';
export { clone, clones } from './module/clones.js';
export { ModuleList, Sequential, type NamedModules } from './module/containers.js';
export { decayGroups, type DecayGroup, type DecayGroupsOptions } from './model/decayGroups.js';
export { Decoder, DecoderLayer } from './model/decoder.js';
export { Dropout } from './layers/dropout.js';
export { Embedding } from './layers/embedding.js';
export { Encoder, EncoderLayer } from './model/encoder.js';
export { Generator } from './model/generator.js';
export type { BackwardHook, ForwardHook, ForwardPreHook, HookOptions } from './module/hooks.js';
/** In-place weight initialization: uniform, normal, constant, Xavier and Kaiming. */
export * as init from './module/init.js';
export { LayerNorm, type LayerNormOptions, type NormNames } from './layers/layerNorm.js';
export { type AttentionModule, type LayerOptions, type StackOptions } from './model/layerStack.js';
export { LearnedPositions, type LearnedPositionsOptions } from './layers/learnedPositions.js';
export { Linear, type LinearOptions } from './layers/linear.js';
export { freeze, unfreeze } from './finetuning/freeze.js';
export { applyLora, loraStateDict, mergeLora, type LoraOptions } from './finetuning/lora.js';
export { LoraLinear, type LoraSettings } from './layers/loraLinear.js';
export type { NamePattern, NamePatterns } from './module/namePatterns.js';
export {
  linearCrossEntropy,
  type LinearCrossEntropy,
  type LinearCrossEntropyOptions,
} from './loss/linearCrossEntropy.js';
export type { LabelSmoothingOptions, SmoothingForm } from './loss/labelSmoothing.js';
export {
  StateDictError,
  type LoadStateOptions,
  type LoadStateResult,
  type StateSource,
} from './module/loadState.js';
export { crossEntropy, CrossEntropyLoss, type CrossEntropyOptions } from './loss/crossEntropy.js';
export { makeModel } from './model/makeModel.js';
export {
  booleanMask,
  combineMasks,
  fromAdditiveMask,
  paddingMask,
  subsequentMask,
  targetMask,
  type EmptyRows,
} from './attention/mask.js';
export {
  type BiasOptions,
  type ModelConfig,
  type ModelOptions,
  type Positions,
  type Tie,
  type VocabSize,
} from './model/modelOptions.js';
export { Module, type BufferForm, type NamedOptions, type TensorModule } from './module/module.js';
export { ModuleDict } from './module/moduleDict.js';

export type { FloatingDType, ModuleTarget } from './module/moveModule.js';
export {
  MultiHeadedAttention,
  type MultiHeadedAttentionOptions,
} from './attention/multiHeadedAttention.js';
export { type Norm, type NormConfig, type NormOptions } from './layers/norm.js';
export { PackedMask, PackedSequences } from './packed/packedSequences.js';
export { Buffer, Parameter } from './module/parameter.js';
export type { Ties } from './module/ties.js';
export type { ModuleClass } from './module/paths.js';
export {
  PositionalEncoding,
  type PositionalEncodingOptions,
  type PositionFormula,
} from './layers/positionalEncoding.js';
export {
  PositionwiseFeedForward,
  type Activation,
  type PositionwiseFeedForwardOptions,
} from './layers/positionwiseFeedForward.js';
export { RMSNorm, type RMSNormOptions } from './layers/rmsNorm.js';
export { RotaryPositions, type RotaryPositionsOptions } from './layers/rotaryPositions.js';
export {
  SublayerConnection,
  type NormOrder,
  type Sublayer,
  type SublayerConnectionOptions,
} from './model/sublayerConnection.js';
export { isPackable, Transformer, type PackedInput } from './model/transformer.js';
export { TransformerEmbedding } from './model/transformerEmbedding.js';
