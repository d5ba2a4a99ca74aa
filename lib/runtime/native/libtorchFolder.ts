/** The layout and the version of a folder that contains libtorch. */
import { existsSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ownPlatform } from './platform.js';

const { c10, torchCpu, torchCuda } = ownPlatform.libraries;

/** A folder that contains libtorch. */
export interface LibtorchFolder {
  /** The folder that contains `lib/` (and `include/`), with all symbolic links resolved. */
  readonly root: string;
  /** The folder that contains libtorch_cpu.so and libc10.so. */
  readonly libraries: string;
  /** Whether it has the C++ headers, which only a build needs. */
  readonly headers: boolean;
  /** From a file in the folder, e.g. `2.13.0+cpu`; null if there is none. */
  readonly version: string | null;
  /** Whether it has libtorch_cuda.so. */
  readonly cuda: boolean;
}

/**
 * Inspects `folder` without loading anything. It may be the folder that contains `lib/`, `lib/`
 * itself, or the parent folder (`site-packages` with `torch/`, an archive's with `libtorch/`).
 *
 * @returns the folder, or what is wrong with it
 */
export function inspectLibtorch(folder: string): LibtorchFolder | string {
  const broken = brokenLink(folder) ?? brokenLink(join(folder, 'torch'));
  if (broken !== null) return broken;
  if (!existsSync(folder)) return 'does not exist';
  if (!statSync(folder).isDirectory()) return 'is a file, but must be a folder';
  const holder = [folder, join(folder, 'torch'), join(folder, 'libtorch'), dirname(folder)].find(
    (candidate) =>
      existsSync(join(candidate, 'lib', torchCpu)) &&
      (candidate !== dirname(folder) || basename(folder) === 'lib'),
  );
  if (holder === undefined) return `has no lib/${torchCpu}`;
  // The CUDA build finds its other libraries relative to its real path.
  const root = realpathSync(holder);
  const libraries = join(root, 'lib');
  if (!existsSync(join(libraries, c10))) return `has lib/${torchCpu} but no lib/${c10}`;
  return {
    root,
    libraries,
    headers: existsSync(join(root, versionHeader)),
    version: readVersion(root),
    cuda: existsSync(join(libraries, torchCuda)),
  };
}

/** Setup leaves a broken link if the folder that it was given with `from` no longer exists. */
function brokenLink(path: string): string | null {
  try {
    const target = readlinkSync(path);
    return existsSync(path) ? null : `links to ${target}, which does not exist`;
  } catch {
    // Not a link, or nothing at all.
    return null;
  }
}

/** Whether `found` (`2.13.0+cpu`) is a build of `wanted` (`2.13.0`). */
export function isVersion(found: string, wanted: string): boolean {
  return found.split('+', 1)[0] === wanted;
}

const versionHeader = join('include', 'torch', 'headeronly', 'version.h');

/** The files in which the wheel, the official archive and the headers have their version. */
const versionSources: readonly (readonly [file: string, pattern: RegExp])[] = [
  ['version.py', /^__version__ = '([^']+)'/m],
  ['build-version', /^(\S+)/],
  [versionHeader, /define TORCH_VERSION\s+\\?\s*"([^"]+)"/],
];

function readVersion(root: string): string | null {
  for (const [file, pattern] of versionSources) {
    let text: string;
    try {
      text = readFileSync(join(root, file), 'utf8');
    } catch {
      continue;
    }
    const match = pattern.exec(text);
    if (match?.[1] !== undefined) return match[1];
  }
  return null;
}
