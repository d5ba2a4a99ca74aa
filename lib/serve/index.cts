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
  type CloseOptions = esm.CloseOptions;
  type DetailedOptions = esm.DetailedOptions;
  type ListenOptions = esm.ListenOptions;
  type ServeOptions = esm.ServeOptions;
  type ServedAttention = esm.ServedAttention;
  type ServedHypothesis = esm.ServedHypothesis;
  type ServedOptions = esm.ServedOptions;
  type ServedToken = esm.ServedToken;
  type ServedTranslation = esm.ServedTranslation;
  type ServedTranslator = esm.ServedTranslator;
  type ServedWord = esm.ServedWord;
  type TranslationServer = esm.TranslationServer;
}

export = torchformer;
