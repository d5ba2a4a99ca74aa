/** Facts about this package and this machine that several parts of the runtime need. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { TorchError } from './errors.js';
import { moduleFile } from './moduleFile.js';
import { ownPlatform, resolvePlatformPackage } from './native/platform.js';
import { version } from './version.js';

/** The libtorch that this version of the package is built and tested with. */
export const libtorchVersion = '2.13.0';

/** The root folder of the package, which has its package.json. */
export const packageRoot = join(dirname(moduleFile), '..', '..');

/** npm package with the prebuilt addon for this machine. */
export const addonPackage = ownPlatform.addonPackage;

/** npm package with the CPU libraries of libtorch for this machine. */
export const libtorchPackage = ownPlatform.libtorchPackage;

/** The version in package.json. */
export function packageVersion(): string {
  return version;
}

/**
 * Where setup keeps its downloads, shared by all copies of the package: `TORCHFORMER_CACHE`,
 * else `XDG_CACHE_HOME/torchformer`, else `~/.cache/torchformer`.
 *
 * @throws TorchError ERR_NATIVE_LOAD if there is no home folder
 */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const own = environment['TORCHFORMER_CACHE'];
  if (own) return resolve(own);
  const shared = environment['XDG_CACHE_HOME'];
  return shared ? resolve(shared, 'torchformer') : join(home(), '.cache', 'torchformer');
}

/** From HOME, else from the user database. */
function home(): string {
  try {
    const folder = homedir();
    if (folder !== '') return folder;
  } catch {
    // The user may be unknown, for example if a container was started with an arbitrary user id.
  }
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    'this user has no home folder to hold the libtorch cache; ' +
      'set TORCHFORMER_CACHE to a folder for it',
  );
}

/** The cache folder of one build of libtorch; its libraries are in `torch/lib`. */
export function cacheEntry(
  variant: 'cpu' | 'cuda',
  version: string = libtorchVersion,
  environment: NodeJS.ProcessEnv = process.env,
): string {
  return join(cacheFolder(environment), `libtorch-${version}-${variant}`);
}

/**
 * The folder of an optional npm package, or null if it is not installed. Depending on the package
 * manager, it is installed below this package or below the platform package.
 */
export function resolvePackage(name: string): string | null {
  const direct = resolvePlatformPackage(name);
  if (direct !== null || name === addonPackage) return direct;
  const platform = resolvePlatformPackage(addonPackage);
  return platform === null ? null : resolvePlatformPackage(name, platform);
}

/** The package.json in `folder`, or null if it does not exist or cannot be read. */
export function readManifest(folder: string): PackageManifest | null {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageManifest;
  } catch {
    return null;
  }
}

/** The parts of a package.json that are used here. */
export interface PackageManifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}
