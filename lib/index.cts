/* eslint-disable @typescript-eslint/no-namespace, @typescript-eslint/no-require-imports --
   The form that CommonJS has: one value, with the types beside it. */
/**
 * The package for `require`: the very modules that `import` gives, so that there is one copy of
 * everything, whoever loads it first.
 *
 * Made by `npm run api`. TypeScript does not let a CommonJS file hand on the types of an ES module
 * in one line, so they are listed; the values need no list.
 */
import type * as esm from './index.js' with { 'resolution-mode': 'import' };
import nodeModule = require('node:module');

const torchformer = load();

/**
 * Under tsx, whose hooks give Node.js the sources of CommonJS modules, the `require` of this file
 * cannot load an ES module on Node.js 20; one made for the file can. It comes second, because
 * bundlers only follow the first.
 */
function load(): typeof esm {
  try {
    return require('./index.js') as typeof esm;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_VM_MODULE_LINK_FAILURE') throw error;
    return nodeModule.createRequire(__filename)('./index.js') as typeof esm;
  }
}

declare namespace torchformer {
  type Activation = esm.Activation;
  type Adam = esm.Adam;
  type AdamSettings = esm.AdamSettings;
  type AdamW = esm.AdamW;
  type AllcloseOptions = esm.AllcloseOptions;
  type AlphaOptions = esm.AlphaOptions;
  type AminmaxOptions = esm.AminmaxOptions;
  type AttentionChoice = esm.AttentionChoice;
  type AttentionMaps = esm.AttentionMaps;
  type AttentionMapsInput = esm.AttentionMapsInput;
  type AttentionModule = esm.AttentionModule;
  type AttentionOptions = esm.AttentionOptions;
  type AutocastDType = esm.AutocastDType;
  type AutocastOptions = esm.AutocastOptions;
  type BackwardHook<M extends Module> = esm.BackwardHook<M>;
  type BackwardOptions = esm.BackwardOptions;
  type BaseSettings = esm.BaseSettings;
  type Batch = esm.Batch;
  type BatchIterable = esm.BatchIterable;
  type BatchOptions = esm.BatchOptions;
  type BatchProgress = esm.BatchProgress;
  type BatchSource = esm.BatchSource;
  type Batches = esm.Batches;
  type BestEpoch = esm.BestEpoch;
  type BestModel = esm.BestModel;
  type BiasOptions = esm.BiasOptions;
  type BincountOptions = esm.BincountOptions;
  type Buffer = esm.Buffer;
  type BufferForm = esm.BufferForm;
  type ByteSource = esm.ByteSource;
  type CheckpointEvent = esm.CheckpointEvent;
  type ClipGradNormOptions = esm.ClipGradNormOptions;
  type CreateOptions = esm.CreateOptions;
  type CrossEntropyLoss = esm.CrossEntropyLoss;
  type CrossEntropyOptions = esm.CrossEntropyOptions;
  type CudaMemory = esm.CudaMemory;
  type CumulateOptions = esm.CumulateOptions;
  type DType = esm.DType;
  type DataReport = esm.DataReport;
  type Decoded = esm.Decoded;
  type Decoder = esm.Decoder;
  type DecoderLayer = esm.DecoderLayer;
  type DecodingOptions = esm.DecodingOptions;
  type DecodingPrecision = esm.DecodingPrecision;
  type DetailedOptions = esm.DetailedOptions;
  type Device = esm.Device;
  type DeviceChoice = esm.DeviceChoice;
  type DiagonalOptions = esm.DiagonalOptions;
  type Dims = esm.Dims;
  type DivOptions = esm.DivOptions;
  type Dropout = esm.Dropout;
  type Embedding = esm.Embedding;
  type EmptyRows = esm.EmptyRows;
  type EncodePairsOptions = esm.EncodePairsOptions;
  type Encoder = esm.Encoder;
  type EncoderLayer = esm.EncoderLayer;
  type EndEvent = esm.EndEvent;
  type EpochRecord = esm.EpochRecord;
  type EvaluateOptions = esm.EvaluateOptions;
  type Evaluation = esm.Evaluation;
  type ExamineOptions = esm.ExamineOptions;
  type FitOptions = esm.FitOptions;
  type FitResult = esm.FitResult;
  type Float32Precision = esm.Float32Precision;
  type FloatScalar = esm.FloatScalar;
  type FloatingDType = esm.FloatingDType;
  type ForwardHook<M extends Module> = esm.ForwardHook<M>;
  type ForwardPreHook<M extends Module> = esm.ForwardPreHook<M>;
  type FunctionContext = esm.FunctionContext;
  type FunctionDefinition<Arguments extends readonly unknown[], Output> = esm.FunctionDefinition<
    Arguments,
    Output
  >;
  type GeluOptions = esm.GeluOptions;
  type GenerateOptions = esm.GenerateOptions;
  type GeneratedSequence = esm.GeneratedSequence;
  type Generator = esm.Generator;
  type GradOptions = esm.GradOptions;
  type Gradients = esm.Gradients;
  type GreedyOptions = esm.GreedyOptions;
  type History = esm.History;
  type HookOptions = esm.HookOptions;
  type Index = esm.Index;
  type IndexPutOptions = esm.IndexPutOptions;
  type JsonValue = esm.JsonValue;
  type KeepdimOptions = esm.KeepdimOptions;
  type LayerNorm = esm.LayerNorm;
  type LayerNormOptions = esm.LayerNormOptions;
  type LayerOptions = esm.LayerOptions;
  type LearnedPositions = esm.LearnedPositions;
  type LearnedPositionsOptions = esm.LearnedPositionsOptions;
  type LengthPenalty = esm.LengthPenalty;
  type LibtorchFolder = esm.LibtorchFolder;
  type LineNumbers = esm.LineNumbers;
  type LineOptions = esm.LineOptions;
  type LineReport = esm.LineReport;
  type Linear = esm.Linear;
  type LinearCrossEntropy = esm.LinearCrossEntropy;
  type LinearCrossEntropyOptions = esm.LinearCrossEntropyOptions;
  type LinearOptions = esm.LinearOptions;
  type LoadModelOptions = esm.LoadModelOptions;
  type LoadStateOptions = esm.LoadStateOptions;
  type LoadStateResult = esm.LoadStateResult;
  type LoadTranslatorOptions = esm.LoadTranslatorOptions;
  type LoadedModel = esm.LoadedModel;
  type LossCurveOptions = esm.LossCurveOptions;
  type MalformedRow = esm.MalformedRow;
  type MatrixNorm = esm.MatrixNorm;
  type MeshgridOptions = esm.MeshgridOptions;
  type ModelConfig = esm.ModelConfig;
  type ModelDType = esm.ModelDType;
  type ModelFolderConfig = esm.ModelFolderConfig;
  type ModelOptions = esm.ModelOptions;
  type Module = esm.Module;
  type ModuleClass<M extends Module> = esm.ModuleClass<M>;
  type ModuleDict<T extends Record<string, Module> = Record<string, Module>> = esm.ModuleDict<T>;
  type ModuleList<M extends Module = Module> = esm.ModuleList<M>;
  type ModuleTarget = esm.ModuleTarget;
  type MultiHeadedAttention = esm.MultiHeadedAttention;
  type MultiHeadedAttentionOptions = esm.MultiHeadedAttentionOptions;
  type MultinomialOptions = esm.MultinomialOptions;
  type NamedModules<M extends Module> = esm.NamedModules<M>;
  type NamedOptions = esm.NamedOptions;
  type NanToNumOptions = esm.NanToNumOptions;
  type NestedArray = esm.NestedArray;
  type NoamOptions = esm.NoamOptions;
  type Norm = esm.Norm;
  type NormConfig = esm.NormConfig;
  type NormNames = esm.NormNames;
  type NormOptions = esm.NormOptions;
  type NormOrder = esm.NormOrder;
  type OpTime = esm.OpTime;
  type Optimizer<Settings extends BaseSettings> = esm.Optimizer<Settings>;
  type OptimizerState<Settings> = esm.OptimizerState<Settings>;
  type PackedBatch = esm.PackedBatch;
  type PackedInput = esm.PackedInput;
  type PackedMask = esm.PackedMask;
  type PackedSequences = esm.PackedSequences;
  type Parameter = esm.Parameter;
  type ParameterGroup<Settings> = esm.ParameterGroup<Settings>;
  type ParameterSource<Settings> = esm.ParameterSource<Settings>;
  type ParameterState = esm.ParameterState;
  type ParameterUpdate = esm.ParameterUpdate;
  type PositionFormula = esm.PositionFormula;
  type PositionalEncoding = esm.PositionalEncoding;
  type PositionalEncodingOptions = esm.PositionalEncodingOptions;
  type Positions = esm.Positions;
  type PositionwiseFeedForward = esm.PositionwiseFeedForward;
  type PositionwiseFeedForwardOptions = esm.PositionwiseFeedForwardOptions;
  type ProductOptions = esm.ProductOptions;
  type ProgressBar = esm.ProgressBar;
  type ProgressStream = esm.ProgressStream;
  type RMSNorm = esm.RMSNorm;
  type RMSNormOptions = esm.RMSNormOptions;
  type ReadPairsOptions = esm.ReadPairsOptions;
  type ReadonlyNestedArray = esm.ReadonlyNestedArray;
  type RecomputingStepDecoder = esm.RecomputingStepDecoder;
  type ReduceOptions = esm.ReduceOptions;
  type RelativeLength = esm.RelativeLength;
  type RemovableHook = esm.RemovableHook;
  type RotaryPositions = esm.RotaryPositions;
  type RotaryPositionsOptions = esm.RotaryPositionsOptions;
  type RoundOptions = esm.RoundOptions;
  type RuntimeReport = esm.RuntimeReport;
  type SGD = esm.SGD;
  type SGDSettings = esm.SGDSettings;
  type SafetensorsFile = esm.SafetensorsFile;
  type SampleTranslation = esm.SampleTranslation;
  type Sampling = esm.Sampling;
  type SaveModelOptions = esm.SaveModelOptions;
  type Scalar = esm.Scalar;
  type ScatterReduceOptions = esm.ScatterReduceOptions;
  type ScatterReduction = esm.ScatterReduction;
  type Schedule = esm.Schedule;
  type Scope = esm.Scope;
  type SearchOptions = esm.SearchOptions;
  type SeededRandom = esm.SeededRandom;
  type SentencePair = esm.SentencePair;
  type SequenceGenerator = esm.SequenceGenerator;
  type SequenceGeneratorOptions = esm.SequenceGeneratorOptions;
  type SequencePair = esm.SequencePair;
  type SequenceScore = esm.SequenceScore;
  type Sequential = esm.Sequential;
  type SetupOptions = esm.SetupOptions;
  type Shape = esm.Shape;
  type Sizes = esm.Sizes;
  type SliceRange = esm.SliceRange;
  type SliceText = esm.SliceText;
  type SoftmaxOptions = esm.SoftmaxOptions;
  type SoftplusOptions = esm.SoftplusOptions;
  type SortOptions = esm.SortOptions;
  type SpecialIdOptions = esm.SpecialIdOptions;
  type SpecialIds = esm.SpecialIds;
  type SpecialTokens = esm.SpecialTokens;
  type SplitOptions = esm.SplitOptions;
  type StackOptions = esm.StackOptions;
  type StartEvent = esm.StartEvent;
  type StateDictError = esm.StateDictError;
  type StateSource = esm.StateSource;
  type StepDecoder = esm.StepDecoder;
  type StepEvent = esm.StepEvent;
  type StepRecord = esm.StepRecord;
  type StreamOptions = esm.StreamOptions;
  type Sublayer = esm.Sublayer;
  type SublayerConnection = esm.SublayerConnection;
  type SublayerConnectionOptions = esm.SublayerConnectionOptions;
  type SvdOptions = esm.SvdOptions;
  type Tensor = esm.Tensor;
  type TensorData = esm.TensorData;
  type TensorInfo = esm.TensorInfo;
  type TensorModule = esm.TensorModule;
  type TensorOptions = esm.TensorOptions;
  type TensorSource = esm.TensorSource;
  type TextEncoding = esm.TextEncoding;
  type TextPair = esm.TextPair;
  type TextTooLongError = esm.TextTooLongError;
  type Texts = esm.Texts;
  type Tie = esm.Tie;
  type Ties = esm.Ties;
  type ToOptions = esm.ToOptions;
  type TokenIds = esm.TokenIds;
  type TokenLossOptions = esm.TokenLossOptions;
  type TokenMean = esm.TokenMean;
  type TokenPair = esm.TokenPair;
  type Tokenizer = esm.Tokenizer;
  type TokenizerBatchOptions = esm.TokenizerBatchOptions;
  type TokenizerDecodeOptions = esm.TokenizerDecodeOptions;
  type TokenizerEncodeOptions = esm.TokenizerEncodeOptions;
  type TokenizerProgress = esm.TokenizerProgress;
  type TooLongAction = esm.TooLongAction;
  type TopkOptions = esm.TopkOptions;
  type TorchError = esm.TorchError;
  type TorchErrorCode = esm.TorchErrorCode;
  type TrainBpeOptions = esm.TrainBpeOptions;
  type TrainCharactersOptions = esm.TrainCharactersOptions;
  type Trainer = esm.Trainer;
  type TrainerOptions = esm.TrainerOptions;
  type TrainingEvents = esm.TrainingEvents;
  type TrainingListener = esm.TrainingListener;
  type TrainingOptimizer = esm.TrainingOptimizer;
  type TrainingReporter = esm.TrainingReporter;
  type Transformer = esm.Transformer;
  type TransformerEmbedding = esm.TransformerEmbedding;
  type TranslateOptions = esm.TranslateOptions;
  type TranslatedSentence = esm.TranslatedSentence;
  type TranslatedToken = esm.TranslatedToken;
  type Translation = esm.Translation;
  type TranslationColumns = esm.TranslationColumns;
  type TranslationDataset = esm.TranslationDataset;
  type TranslationDatasetOptions = esm.TranslationDatasetOptions;
  type TranslationHypothesis = esm.TranslationHypothesis;
  type Translator = esm.Translator;
  type TranslatorOptions = esm.TranslatorOptions;
  type UniqueOptions = esm.UniqueOptions;
  type UniqueParts = esm.UniqueParts;
  type UpperOptions = esm.UpperOptions;
  type ValidationBatchEvent = esm.ValidationBatchEvent;
  type ValidationBatchRecord = esm.ValidationBatchRecord;
  type ValidationRecord = esm.ValidationRecord;
  type ValueOptions = esm.ValueOptions;
  type ValuesAndIndices = esm.ValuesAndIndices;
  type VarianceOptions = esm.VarianceOptions;
  type VocabSize = esm.VocabSize;
  namespace seed000 {
    type FeedForward = esm.seed000.FeedForward;
    type FeedForwardOptions = esm.seed000.FeedForwardOptions;
    type LayerNorm = esm.seed000.LayerNorm;
    type LayerNormOptions = esm.seed000.LayerNormOptions;
    type MultiHeadAttention = esm.seed000.MultiHeadAttention;
    type MultiHeadAttentionOptions = esm.seed000.MultiHeadAttentionOptions;
    type SubLayerConnection = esm.seed000.SubLayerConnection;
    type SubLayerConnectionOptions = esm.seed000.SubLayerConnectionOptions;
  }
  namespace seed002 {
    type AttentionOptions = esm.seed002.AttentionOptions;
    type FullyConnectedOutput = esm.seed002.FullyConnectedOutput;
    type FullyConnectedOutputOptions = esm.seed002.FullyConnectedOutputOptions;
    type MultiHead = esm.seed002.MultiHead;
    type MultiHeadOptions = esm.seed002.MultiHeadOptions;
    type PositionEmbedding = esm.seed002.PositionEmbedding;
    type PositionEmbeddingOptions = esm.seed002.PositionEmbeddingOptions;
  }
}

export = torchformer;
