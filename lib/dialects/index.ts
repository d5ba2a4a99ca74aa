/**
 * The classes of two posts with their own names, defaults and state dict keys, so that weights
 * saved by their code can be loaded. All computation is done by the modules of `lib/nn`; these
 * classes only choose the settings. Seed 001 corresponds to the defaults of those modules.
 */

/**
 * The classes and functions of seed 000: LayerNorm with the sample deviation and eps added to it
 * (keys `k`, `b`), dropout 0.2 everywhere, masks with 0 for blocked.
 */
export * as seed000 from './seed000.js';

/**
 * The classes and functions of seed 002: modules with their own norm and residual connection,
 * positions with one exponent per column, masks with true for **blocked**.
 */
export * as seed002 from './seed002.js';
