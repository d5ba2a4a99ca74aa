/** Metrics of translations that equal sacrebleu's. */
export {
  corpusBleu,
  sentenceBleu,
  type BleuOptions,
  type BleuScore,
  type BleuSmoothing,
} from './bleu.js';
export {
  pairedBootstrap,
  type ConfidentScore,
  type PairedBootstrapOptions,
  type PairedComparison,
  type PairedScores,
} from './bootstrap/pairedBootstrap.js';
export { corpusChrf, sentenceChrf, type ChrfOptions, type ChrfScore } from './chrf.js';
export type { References } from './corpus.js';
export { formatScore } from './formatScore.js';
export type { MetricScore } from './metric.js';
export {
  scoreTranslations,
  type CorpusScores,
  type MetricOptions,
  type ScoreOptions,
} from './scoreTranslations.js';
export { corpusTer, sentenceTer, type TerOptions, type TerScore } from './ter.js';
export { tokenizerFor, type BleuTokenizer } from './tokenizers/bleuTokenizer.js';
