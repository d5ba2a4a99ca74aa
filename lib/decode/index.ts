/** Decoding: from a model to texts. */
export { greedy, type Decoded, type GreedyOptions } from './greedy.js';
export type {
  AttentionChoice,
  LengthPenalty,
  RelativeLength,
  Sampling,
  DecodingOptions,
} from './decodingOptions.js';
export type { DecodingPrecision } from './native/preparedModel.js';
export {
  SequenceGenerator,
  type GeneratedSequence,
  type GenerateOptions,
  type SequenceGeneratorOptions,
  type SequencePair,
  type SequenceScore,
} from './sequenceGenerator.js';
export { RecomputingStepDecoder, type StepDecoder } from './stepDecoder.js';
export { TextTooLongError } from './textTooLong.js';
export type {
  DetailedOptions,
  LineNumbers,
  LineOptions,
  LineReport,
  SplitOptions,
  StreamOptions,
  TooLongAction,
  TranslatedSentence,
  TranslatedToken,
  TranslateOptions,
  Translation,
  TranslationHypothesis,
} from './translation.js';
export { Translator, type LoadTranslatorOptions, type TranslatorOptions } from './translator.js';
