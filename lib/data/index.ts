export * from './batching/batch.js';
export * from './batching/batches.js';
export type { ByteSource } from './reading/byteSource.js';
export { TranslationDataset, type TranslationDatasetOptions } from './dataset.js';
export { encodePairs, frame, type EncodePairsOptions } from './encodePairs.js';
export type { PackedBatch } from './batching/packedBatch.js';
export type { TextPair, TokenPair } from './pairs.js';
export { readPairs, type ReadPairsOptions, type SentencePair } from './reading/pairReader.js';
export { describeReport, newReport, type DataReport, type MalformedRow } from './report.js';
export { SeededRandom } from './batching/seededRandom.js';
export * from './tokenizers/specialIds.js';
export {
  Tokenizer,
  type TextEncoding,
  type TokenIds,
  type TokenizerBatchOptions,
  type TokenizerDecodeOptions,
  type TokenizerEncodeOptions,
} from './tokenizers/tokenizer.js';
export * from './tokenizers/trainTokenizer.js';
