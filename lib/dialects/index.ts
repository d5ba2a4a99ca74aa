/**
 * The classes of two posts in their own dialects: their names, their defaults, their keys in state
 * dicts, so that weights saved by their code load. Everything is computed by the modules of
 * `lib/nn`; the classes here only choose the settings. Seed 001 is what those modules do by
 * default.
 */
export * as seed000 from './seed000.js';
export * as seed002 from './seed002.js';
