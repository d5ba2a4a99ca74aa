/** What a folder with libtorch in it looks like, and which version it holds. */
import { existsSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ownPlatform } from './platform.js';

const { c10, torchCpu, torchCuda } = ownPlatform.libraries;

/** A folder that holds libtorch. */
export interface LibtorchFolder {
  /** The folder with `lib/` (and `include/`) in it, all symbolic links resolved. */
  readonly root: string;
  /** Where libtorch_cpu.so and libc10.so are. */
  readonly libraries: string;
  /** Whether the C++ headers are there, which only a build needs. */
  readonly headers: boolean;
  /** As the folder says, e.g. `2.13.0+cpu`; null when no file in it tells. */
  readonly version: string | null;
  /** Whether libtorch_cuda.so is there. */
  readonly cuda: boolean;
}

/**
 * Looks at `folder` without loading anything. It may be the folder with `lib/` in it, `lib/` itself,
 * or the folder around (`site-packages` with `torch/`, an unpacked archive with `libtorch/`).
 *
 * @returns the folder, or what is wrong with it
 */
export function inspectLibtorch(folder: string): LibtorchFolder | string {
  const nowhere = brokenLink(folder) ?? brokenLink(join(folder, 'torch'));
  if (nowhere !== null) return nowhere;
  if (!existsSync(folder)) return 'does not exist';
  if (!statSync(folder).isDirectory()) return 'is a file, and has to be a folder';
  const holder = [folder, join(folder, 'torch'), join(folder, 'libtorch'), dirname(folder)].find(
    (candidate) =>
      existsSync(join(candidate, 'lib', torchCpu)) &&
      (candidate !== dirname(folder) || basename(folder) === 'lib'),
  );
  if (holder === undefined) return `has no lib/${torchCpu}`;
  // The CUDA build finds its other libraries relative to where it really is.
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

/** As set-up leaves behind when the folder that it was told to use has gone. */
function brokenLink(path: string): string | null {
  try {
    const target = readlinkSync(path);
    return existsSync(path) ? null : `leads to ${target}, which does not exist`;
  } catch {
    // No link, or nothing at all.
    return null;
  }
}

/** Whether `found` (`2.13.0+cpu`) is a build of `wanted` (`2.13.0`). */
export function isVersion(found: string, wanted: string): boolean {
  return found.split('+', 1)[0] === wanted;
}

const versionHeader = join('include', 'torch', 'headeronly', 'version.h');

/** Where the wheel, the official archive and the headers say their version. */
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
