/** Facts about this package and the machine that several parts of the runtime need. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { TorchError } from './errors.js';
import { moduleFile } from './moduleFile.js';
import { ownPlatform, resolvePlatformPackage } from './native/platform.js';
import { version } from './version.js';

/** The libtorch that this version of the package is built and tested with. */
export const libtorchVersion = '2.13.0';

/** The folder of the package: the one with package.json. */
export const packageRoot = join(dirname(moduleFile), '..', '..');

/** npm package with the addon for this machine, built ahead. */
export const addonPackage = ownPlatform.addonPackage;

/** npm package with the CPU libraries of libtorch for this machine. */
export const libtorchPackage = ownPlatform.libtorchPackage;

/** The version in package.json. */
export function packageVersion(): string {
  return version;
}

/**
 * Where set-up keeps what it fetched, shared by all copies of the package: `TORCHFORMER_CACHE`,
 * else `XDG_CACHE_HOME/torchformer`, else `~/.cache/torchformer`.
 *
 * @throws TorchError ERR_NATIVE_LOAD when there is no home folder
 */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const own = environment['TORCHFORMER_CACHE'];
  if (own) return resolve(own);
  const shared = environment['XDG_CACHE_HOME'];
  return shared ? resolve(shared, 'torchformer') : join(home(), '.cache', 'torchformer');
}

/** Asks HOME, then the list of users. */
function home(): string {
  try {
    const folder = homedir();
    if (folder !== '') return folder;
  } catch {
    // Neither knows, as with a user id that a container was started with.
  }
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    'this user has no home folder, where the cache of libtorch would be; ' +
      'set TORCHFORMER_CACHE to a folder for it',
  );
}

/** The cache's folder for one build of libtorch; the libraries are in `torch/lib` inside. */
export function cacheEntry(
  variant: 'cpu' | 'cuda',
  version: string = libtorchVersion,
  environment: NodeJS.ProcessEnv = process.env,
): string {
  return join(cacheFolder(environment), `libtorch-${version}-${variant}`);
}

/**
 * The folder of an optional npm package, null when it is not installed. It may hang below this
 * package or below the platform package, depending on the package manager.
 */
export function resolvePackage(name: string): string | null {
  const direct = resolvePlatformPackage(name);
  if (direct !== null || name === addonPackage) return direct;
  const platform = resolvePlatformPackage(addonPackage);
  return platform === null ? null : resolvePlatformPackage(name, platform);
}

/** What the package.json in `folder` says, null when there is none that can be read. */
export function readManifest(folder: string): PackageManifest | null {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageManifest;
  } catch {
    return null;
  }
}

/** The parts of a package.json that matter here. */
export interface PackageManifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}
