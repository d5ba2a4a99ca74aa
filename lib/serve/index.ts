/**
 * A server that speaks LibreTranslate's API.
 *
 * @module torchformer/serve
 */
export { createServer } from './createServer.js';
export type { CloseOptions, ListenOptions, TranslationServer } from './translationServer.js';
export { readApiKeys } from './apiKeys.js';
export type { ServeOptions } from './serveOptions.js';
export type {
  DetailedOptions,
  ServedAttention,
  ServedHypothesis,
  ServedOptions,
  ServedToken,
  ServedTranslation,
  ServedTranslator,
  ServedWord,
} from './servedTranslator.js';
