/** Checks that a native file is complete and for this machine, before it is loaded. */
import { ownMachine, readElf } from './elf.js';
import { ownPlatform } from './platform.js';

/**
 * The problem of a library or addon, or null if none is found. The linker would map a truncated
 * file, and the process would then end with a bus error. Only ELF files are checked.
 */
export function nativeFileProblem(path: string): string | null {
  if (!ownPlatform.libraries.areElf) return null;
  const file = readElf(path);
  if (typeof file === 'string') return `${path} ${file}`;
  if (file.machine === ownMachine) return null;
  return `${path} is for ${file.machine} processors, but this is Node.js for ${ownMachine}`;
}
