/** The location of the compiled runtime. */
import { fileURLToPath } from 'node:url';

/** Undefined in a CommonJS bundle, which has `__filename` instead. */
const url: string | undefined = import.meta.url;

/** The path of this module's file, or of the bundle that contains it. */
export const moduleFile: string = url === undefined ? __filename : fileURLToPath(url);
