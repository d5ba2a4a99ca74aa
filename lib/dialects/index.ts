/**
 * The classes of two posts in their own dialects: their names, their defaults, their keys in state
 * dicts, so that weights saved by their code load. Everything is computed by the modules of
 * `lib/nn`; the classes here only choose the settings. Seed 001 is what those modules do by
 * default.
 */

/**
 * Seed 000's classes and functions: LayerNorm with the sample deviation and eps beside it (keys
 * `k`, `b`), dropout 0.2 everywhere, masks with 0 for blocked.
 */
export * as seed000 from './seed000.js';

/**
 * Seed 002's classes and functions: modules that hold their own norm and residual connection,
 * positions with an exponent a column, masks with true for **blocked**.
 */
export * as seed002 from './seed002.js';
