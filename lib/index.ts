/**
 * The Transformer of the paper, trained and decoded at native speed, on libtorch.
 *
 * @module torchformer
 */
export * from './tensor/index.js';
export * from './nn/index.js';
export * from './optim/index.js';
export * from './data/index.js';
export * from './io/index.js';
export * from './train/index.js';
export * from './train/report/index.js';
export * from './train/translationScores.js';
export * from './decode/index.js';
export * from './metrics/index.js';
export * from './runtime/index.js';
export * from './dialects/index.js';
