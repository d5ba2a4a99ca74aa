/** Whether the libraries of a libtorch are whole, and for this machine. Nothing is loaded. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ownMachine, readElf } from './elf.js';
import type { LibtorchFolder } from './libtorchFolder.js';
import { ownPlatform } from './platform.js';

/** What cannot work about the libraries, null when nothing is found. Looks at ELF files alone. */
export function libraryProblem({ libraries, cuda }: LibtorchFolder): string | null {
  const { c10, torchCpu, torchCuda, areElf } = ownPlatform.libraries;
  if (!areElf) return null;
  for (const name of [c10, torchCpu, ...(cuda ? [torchCuda] : [])]) {
    const path = join(libraries, name);
    const file = readElf(path);
    if (typeof file === 'string') return `${path} ${file}`;
    if (file.machine !== ownMachine) {
      return `${path} is for ${file.machine} processors, this is Node.js for ${ownMachine}`;
    }
  }
  return null;
}

/**
 * NVIDIA's libraries that those of libtorch in `root/torch/lib` need and that are nowhere in `root`.
 * The driver's own is not one of them: it comes with the driver.
 */
export function missingNvidiaLibraries(root: string): readonly string[] {
  const folder = join(root, 'torch/lib');
  const there = new Set(
    [folder, join(root, 'torch.libs'), join(root, 'nvidia')].flatMap((path) =>
      existsSync(path) ? namesBelow(path) : [],
    ),
  );
  const needed = readdirSync(folder).flatMap((name) => {
    const file = readElf(join(folder, name));
    return typeof file === 'string' ? [] : file.needed;
  });
  const missing = needed.filter(
    (name) =>
      /^lib(cu|nv|nccl)/.test(name) &&
      name !== ownPlatform.libraries.cudaDriver &&
      !there.has(name),
  );
  return [...new Set(missing)].sort();
}

function namesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
    (path) => path.split(/[/\\]/).at(-1) ?? path,
  );
}
