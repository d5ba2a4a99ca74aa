/** Where the compiled runtime is. */
import { fileURLToPath } from 'node:url';

/** Undefined in a bundle in CommonJS, which has `__filename` instead. */
const url: string | undefined = import.meta.url;

/** The path of this module's file, or of the bundle that it became part of. */
export const moduleFile: string = url === undefined ? __filename : fileURLToPath(url);
