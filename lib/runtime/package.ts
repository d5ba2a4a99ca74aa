/** Facts about this package and the machine that several parts of the runtime need. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TorchError } from './errors.js';

/** The libtorch that this version of the package is built and tested with. */
export const libtorchVersion = '2.13.0';

/** The folder of the package: the one with package.json. */
export const packageRoot = fileURLToPath(new URL('../../', import.meta.url));

/** The name that npm packages with binaries carry for this machine: `linux-x64`. */
export const platformName = `${process.platform}-${process.arch}`;

/** npm package with the addon, built ahead. */
export const addonPackage = `@torchformer/${platformName}`;

/** npm package with the CPU libraries of libtorch. */
export const libtorchPackage = `@torchformer/libtorch-cpu-${platformName}`;

/** The version in package.json. */
export function packageVersion(): string {
  const text = readFileSync(join(packageRoot, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
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
  const fromHere = createRequire(join(packageRoot, 'package.json'));
  const tryResolve = (from: NodeJS.Require): string | null => {
    try {
      return dirname(from.resolve(`${name}/package.json`));
    } catch {
      return null;
    }
  };
  const direct = tryResolve(fromHere);
  if (direct !== null || name === addonPackage) return direct;
  const platform = resolvePackage(addonPackage);
  if (platform === null) return null;
  return tryResolve(createRequire(join(platform, 'package.json')));
}
