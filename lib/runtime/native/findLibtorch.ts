/** Where and in which order libtorch is searched for, and the error if it is not found. */
import { resolve } from 'node:path';
import { libraryProblem } from './checkLibraries.js';
import { TorchError } from '../errors.js';
import { inspectLibtorch, isVersion, type LibtorchFolder } from './libtorchFolder.js';
import {
  addonPackage,
  cacheEntry,
  libtorchPackage,
  libtorchVersion,
  readManifest,
  resolvePackage,
} from '../package.js';
import { ownPlatform, unsupportedSystem } from './platform.js';
import { pythonTorchFolder } from './python.js';

/** A place that was searched. */
export interface Attempt {
  /** For messages: `TORCHFORMER_LIBTORCH`, `setup cache (CPU)`, … */
  readonly place: string;
  /** The folder that was inspected; null if there was none. */
  readonly path: string | null;
  /** Why it is not used; null for the place that is used. */
  readonly problem: string | null;
}

export interface Search {
  /** The libtorch to use and where it was found; null if there is none. */
  readonly found: (LibtorchFolder & { readonly place: string }) | null;
  readonly attempts: readonly Attempt[];
  /** Whether only a libtorch of another version was found. */
  readonly wrongVersion: boolean;
}

export interface SearchOptions {
  /** The required version. Default: the one this package is built with. */
  version?: string;
  /** Whether the C++ headers are also required, for a build. Default false. */
  headers?: boolean;
  /** Environment variables. Default `process.env`. */
  environment?: NodeJS.ProcessEnv;
}

/**
 * Searches for libtorch: `TORCHFORMER_LIBTORCH`, `LIBTORCH` → the setup cache → the npm package
 * with the libraries → the torch of an installed Python. If a variable names a folder that cannot
 * be used, the search ends there. Libraries that are truncated or for another processor are
 * rejected. Nothing is loaded.
 */
export function searchLibtorch(options: SearchOptions = {}): Search {
  const { version = libtorchVersion, headers = false, environment = process.env } = options;
  const attempts: Attempt[] = [];
  let wrongVersion = false;

  const consider = (place: string, path: string): Search | null => {
    const folder = inspectLibtorch(path);
    let problem: string | null = null;
    if (typeof folder === 'string') {
      problem = folder;
    } else if (folder.version !== null && !isVersion(folder.version, version)) {
      problem = `is libtorch ${folder.version}, but ${version} is needed`;
      wrongVersion = true;
    } else if (headers && !folder.headers) {
      problem = 'has no include/, which a build needs';
    } else {
      problem = libraryProblem(folder);
    }
    attempts.push({ place, path, problem });
    if (problem !== null || typeof folder === 'string') return null;
    return { found: { ...folder, place }, attempts, wrongVersion: false };
  };
  const nothing = (): Search => ({ found: null, attempts, wrongVersion });

  for (const variable of ['TORCHFORMER_LIBTORCH', 'LIBTORCH']) {
    const value = environment[variable];
    if (value) return consider(variable, resolve(value)) ?? nothing();
    attempts.push({ place: variable, path: null, problem: 'not set' });
  }

  // Whoever downloaded the CUDA build wants to use it; both work without a GPU.
  const variants =
    environment['TORCHFORMER_CUDA'] === '0'
      ? (['cpu', 'cuda'] as const)
      : (['cuda', 'cpu'] as const);
  for (const variant of variants) {
    const place = `setup cache (${variant === 'cpu' ? 'CPU' : 'CUDA'})`;
    let entry: string;
    try {
      entry = cacheEntry(variant, version, environment);
    } catch (error) {
      attempts.push({ place, path: null, problem: (error as Error).message });
      continue;
    }
    const result = consider(place, entry);
    if (result) return result;
  }

  const npmFolder = resolvePackage(libtorchPackage);
  if (npmFolder === null) {
    attempts.push({
      place: `npm package ${libtorchPackage}`,
      path: null,
      problem: 'not installed',
    });
  } else {
    const result = consider(`npm package ${libtorchPackage}`, npmFolder);
    if (result) return result;
  }

  const python = pythonTorchFolder(environment);
  if (python.folder === null) {
    attempts.push({ place: 'Python', path: null, problem: python.problem });
  } else {
    const result = consider(`Python (${python.executable})`, python.folder);
    if (result) return result;
  }
  return nothing();
}

/** Whether `place` is an environment variable, which setup cannot change. */
export function isVariable(place: string): boolean {
  return place === 'TORCHFORMER_LIBTORCH' || place === 'LIBTORCH';
}

/** Like {@link searchLibtorch}, but throws {@link libtorchMissing} if there is none. */
export function findLibtorch(
  options: SearchOptions = {},
): LibtorchFolder & { readonly place: string } {
  const search = searchLibtorch(options);
  if (search.found === null) throw libtorchMissing(search, options.version ?? libtorchVersion);
  return search.found;
}

/** The error of a search that found nothing: every place, why it was rejected, and the fix. */
export function libtorchMissing(search: Search, version: string): TorchError {
  const unsupported = unsupportedSystem();
  if (unsupported !== null) return new TorchError('ERR_NATIVE_LOAD', unsupported);
  const explicit = search.attempts.find(({ place, path }) => path !== null && isVariable(place));
  const lines = search.attempts.map(
    ({ place, path, problem }) =>
      `  ${place}${path === null ? '' : ` ${path}`}: ${problem ?? 'fine'}`,
  );
  const fix =
    explicit === undefined
      ? `Run ${waysToGetIt()}, or set TORCHFORMER_LIBTORCH to a folder that has ` +
        `lib/${ownPlatform.libraries.torchCpu} of version ${version}.`
      : `Set ${explicit.place} to a folder that has lib/${ownPlatform.libraries.torchCpu} of version ${version}, ` +
        'or unset it and run `npx torchformer setup`.';
  const what = search.wrongVersion
    ? `this build of torchformer needs libtorch ${version}, and only another version was found`
    : `no libtorch ${version} can be used`;
  return new TorchError(
    search.wrongVersion ? 'ERR_LIBTORCH_VERSION' : 'ERR_NATIVE_LOAD',
    `${what}. Looked in:\n${lines.join('\n')}\n${fix}`,
  );
}

/** If the addon's npm package is installed, its companion package with libtorch comes first. */
function waysToGetIt(): string {
  const setup = '`npx torchformer setup`';
  const folder = resolvePackage(addonPackage);
  const wanted =
    folder === null ? undefined : readManifest(folder)?.dependencies?.[libtorchPackage];
  return wanted === undefined ? setup : `\`npm install ${libtorchPackage}@${wanted}\`, or ${setup}`;
}
