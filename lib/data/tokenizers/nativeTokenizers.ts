import { createRequire } from 'node:module';
import type * as Tokenizers from 'tokenizers';
import { TorchError } from '../../runtime/errors.js';
import { moduleFile } from '../../runtime/moduleFile.js';

let loaded: typeof Tokenizers | null = null;

/**
 * Hugging Face's tokenizers library through its Node package, loaded on first use: importing
 * torchformer loads no native library.
 *
 * @throws TorchError ERR_NATIVE_LOAD if the package has no binary for this platform
 */
export function nativeTokenizers(): typeof Tokenizers {
  if (loaded === null) {
    try {
      loaded = createRequire(moduleFile)('tokenizers') as typeof Tokenizers;
    } catch (error) {
      throw new TorchError(
        'ERR_NATIVE_LOAD',
        `the package "tokenizers" does not load on ${process.platform}-${process.arch}; ` +
          `is it installed (npm install)? ${(error as Error).message}`,
        { cause: error },
      );
    }
  }
  return loaded;
}
