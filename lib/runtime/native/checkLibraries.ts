/** Checks that libtorch's libraries are complete and for this machine, without loading them. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readElf } from './elf.js';
import type { LibtorchFolder } from './libtorchFolder.js';
import { nativeFileProblem } from './nativeFile.js';
import { ownPlatform } from './platform.js';

/** The first problem of the libraries, or null if none is found. */
export function libraryProblem({ libraries, cuda }: LibtorchFolder): string | null {
  const { c10, torchCpu, torchCuda } = ownPlatform.libraries;
  for (const name of [c10, torchCpu, ...(cuda ? [torchCuda] : [])]) {
    const problem = nativeFileProblem(join(libraries, name));
    if (problem !== null) return problem;
  }
  return null;
}

/**
 * NVIDIA's libraries that libtorch in `root/torch/lib` needs and that are missing in `root`.
 * The library of the driver is not one of them: it comes with the driver.
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
