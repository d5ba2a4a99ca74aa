/** Decoding: from a model to texts. */
export { greedy, type Decoded, type GreedyOptions } from './greedy.js';
export { RecomputingStepDecoder, type StepDecoder } from './stepDecoder.js';
export {
  TextTooLongError,
  Translator,
  type TranslateOptions,
  type TranslatorOptions,
} from './translator.js';
