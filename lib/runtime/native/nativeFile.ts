/** Whether one native file is whole and for this machine, before the dynamic linker gets it. */
import { ownMachine, readElf } from './elf.js';
import { ownPlatform } from './platform.js';

/**
 * What cannot work about a library or addon, null when nothing is found. The linker maps a file that
 * is cut off and then ends the process with a bus error, so it must not get one. Looks at ELF files
 * alone.
 */
export function nativeFileProblem(path: string): string | null {
  if (!ownPlatform.libraries.areElf) return null;
  const file = readElf(path);
  if (typeof file === 'string') return `${path} ${file}`;
  if (file.machine === ownMachine) return null;
  return `${path} is for ${file.machine} processors, this is Node.js for ${ownMachine}`;
}
