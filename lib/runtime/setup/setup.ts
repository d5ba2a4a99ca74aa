/** Brings libtorch into the cache that all copies of the package on this machine share. */
import { lstatSync } from 'node:fs';
import { access, constants, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { libraryProblem } from '../native/checkLibraries.js';
import { explainWriteFault } from '../diskSpace.js';
import { TorchError } from '../errors.js';
import { isUrl } from './http.js';
import { inspectLibtorch, isVersion, type LibtorchFolder } from '../native/libtorchFolder.js';
import { withLock } from '../lock.js';
import { kindOf, makeFolder } from '../makeFolder.js';
import { checkBoolean, checkChoice, checkOptions } from '../arguments.js';
import { cacheEntry, libtorchPackage, libtorchVersion, resolvePackage } from '../package.js';
import { ownPlatform } from '../native/platform.js';
import { checksumIn, obtain } from './sources.js';
import {
  downloadsFolder,
  removeDownloads,
  removeLeftovers,
  workFolderName,
} from './workFolders.js';

/** Options of {@link setUpLibtorch}. */
export interface SetupOptions {
  /** Which build. Default `cpu`: it is 2 % of the CUDA build's size, and runs everywhere. */
  variant?: 'cpu' | 'cuda';
  /**
   * Where libtorch comes from: a folder with it (used where it is, not copied), a folder with
   * wheels, a wheel, a zip or tar.gz archive, or the URL of one of these. Default: the npm package
   * with the libraries where it is installed, else the pinned wheel, by pip or from `indexUrl`.
   */
  from?: string;
  /**
   * The SHA-256 that the file must have. A URL needs one, here or as `#sha256=…` at its end; with
   * the others it is checked when it is given.
   */
  sha256?: string;
  /**
   * The simple URL of the Python package index to fetch the pinned wheel from. Default: what
   * `PIP_INDEX_URL` or pip's configuration tells.
   */
  indexUrl?: string;
  /** Whether to replace what the cache has. Default: only when `from` is given. */
  force?: boolean;
  /** Whether the C++ headers are needed, for a build. Default false. */
  headers?: boolean;
  /** Takes lines of progress. Default: none. */
  log?: (line: string) => void;
}

/**
 * Finds or fetches libtorch {@link libtorchVersion} into the cache. Two set-ups at once are right:
 * the second waits, then finds what the first left. What was begun and broken off leaves nothing
 * that would be taken for a libtorch; a download goes on where it was broken off.
 *
 * @returns the folder, in the cache or of the npm package
 * @throws TypeError for wrong options; TorchError ERR_NATIVE_LOAD when it cannot be fetched,
 *   ERR_LIBTORCH_VERSION when `from` holds another version
 */
export async function setUpLibtorch(options: SetupOptions = {}): Promise<LibtorchFolder> {
  checkSetupOptions(options);
  const { variant = 'cpu', from, sha256, indexUrl, headers = false, log = () => {} } = options;
  const replace = options.force ?? from !== undefined;

  const lookAt = (folder: string): LibtorchFolder | string => inspect(folder, variant, headers);
  // Without a home folder there is none, and where nothing has to be fetched none is needed.
  const cached = replace ? null : entryOrNull(variant);
  if (!replace) {
    const present = cached === null ? 'no cache' : lookAt(cached);
    if (typeof present !== 'string') {
      log(`libtorch is set up already: ${present.root}`);
      return present;
    }
    const installed = variant === 'cpu' ? resolvePackage(libtorchPackage) : null;
    const packaged = installed === null ? 'not installed' : lookAt(installed);
    if (typeof packaged !== 'string') {
      log(`libtorch is there already, in the npm package ${libtorchPackage}: ${packaged.root}`);
      return packaged;
    }
    if (cached !== null && isThere(cached)) log(`replacing ${cached}: ${present}`);
  }

  const entry = cacheEntry(variant);
  const cache = dirname(entry);
  await makeCache(cache);
  return await withLock(
    `${entry}.lock`,
    (holder) => log(`waiting for another set-up to end (${holder})`),
    async () => {
      const made = replace ? 'to be replaced' : lookAt(entry);
      if (typeof made !== 'string') return made;
      await removeLeftovers(cache);
      const work = join(cache, workFolderName());
      const ready = join(work, 'ready');
      const downloads = downloadsFolder(cache);
      const used: string[] = [];
      const request = { ready, work, downloads, used, variant, from, sha256, indexUrl, log };
      try {
        await mkdir(ready, { recursive: true });
        const source = await obtain(request);
        check(ready, variant, source);
        await moveIntoPlace(ready, entry, work);
      } catch (error) {
        throw await explainWriteFault(error, cache);
      } finally {
        await rm(work, { recursive: true, force: true });
        // An empty one is of no use to the next set-up.
        await removeDownloads(cache, []);
      }
      await removeDownloads(cache, used);
      const folder = inspect(entry, variant, false);
      if (typeof folder === 'string') {
        throw new TorchError('ERR_NATIVE_LOAD', `${entry} ${folder} after set-up; try again`);
      }
      log(`libtorch ${folder.version ?? libtorchVersion} is in ${folder.root}`);
      return folder;
    },
  );
}

function entryOrNull(variant: 'cpu' | 'cuda'): string | null {
  try {
    return cacheEntry(variant);
  } catch (error) {
    if (error instanceof TorchError) return null;
    throw error;
  }
}

/** Be it a link that leads nowhere. */
function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function checkSetupOptions(options: SetupOptions): void {
  const owner = 'setUpLibtorch';
  const known = ['variant', 'from', 'sha256', 'indexUrl', 'force', 'headers', 'log'];
  checkOptions(owner, options, known);
  const { variant = 'cpu', from, sha256, indexUrl, force, headers } = options;
  if (force !== undefined) checkBoolean(owner, 'force', force);
  if (headers !== undefined) checkBoolean(owner, 'headers', headers);
  checkChoice(owner, 'variant', variant, ['cpu', 'cuda']);
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new TypeError(`${owner}: sha256 must be 64 hexadecimal digits`);
  }
  if (indexUrl !== undefined && !isUrl(indexUrl)) {
    throw new TypeError(`${owner}: indexUrl must be an http:// or https:// URL, got ${indexUrl}`);
  }
  if (from === undefined) return;
  checkSource(owner, from);
  if (!isUrl(from)) return;
  const inUrl = checksumIn(from);
  if (sha256 === undefined && inUrl === undefined) {
    throw new TypeError(
      `${owner}: a URL needs sha256, the checksum the download must have, or #sha256=… at its end`,
    );
  }
  if (sha256 !== undefined && inUrl !== undefined && sha256.toLowerCase() !== inUrl.toLowerCase()) {
    throw new TypeError(`${owner}: sha256 is not the checksum in the URL, ${inUrl}`);
  }
}

/** Refuses what is neither a path nor an address that can be fetched. */
function checkSource(owner: string, from: unknown): void {
  const wanted = 'from must be a folder, a file, or an http:// or https:// URL';
  if (typeof from !== 'string') {
    throw new TypeError(`${owner}: ${wanted}, got ${from === null ? 'null' : typeof from}`);
  }
  if (from === '') throw new TypeError(`${owner}: ${wanted}, got an empty text`);
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(from) ?? [];
  if (scheme === undefined || (isUrl(from) && URL.canParse(from))) return;
  if (isUrl(from)) throw new TypeError(`${owner}: ${wanted}, got a URL that is not complete`);
  // Not the whole of it: there may be a password in it.
  const way = scheme.toLowerCase() === 'file' ? 'give the path alone' : 'fetch the file first';
  throw new TypeError(`${owner}: ${wanted}, got one with ${scheme}://; ${way}`);
}

/** A folder that does as it is, or why not. */
function inspect(path: string, variant: 'cpu' | 'cuda', headers: boolean): LibtorchFolder | string {
  const folder = inspectLibtorch(path);
  if (typeof folder === 'string') return folder;
  if (folder.version !== null && !isVersion(folder.version, libtorchVersion)) {
    return `is libtorch ${folder.version}, needed is ${libtorchVersion}`;
  }
  if (variant === 'cuda' && !folder.cuda) return `has no lib/${ownPlatform.libraries.torchCuda}`;
  if (headers && !folder.headers) return 'has no include/, which a build needs';
  return libraryProblem(folder) ?? folder;
}

/** @throws TorchError ERR_NATIVE_LOAD naming the folder and the way out */
async function makeCache(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const isFile = ['EEXIST', 'ENOTDIR'].includes(code) && kindOf(folder) === 'file';
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the cache folder ${folder} cannot be written to (${(error as Error).message}` +
        `${isFile ? '; it is a file' : ''}); ` +
        'set TORCHFORMER_CACHE to a folder that can, or TORCHFORMER_LIBTORCH to a libtorch that ' +
        'is there already',
      { cause: error },
    );
  }
}

/** @throws TorchError when what was obtained is no libtorch for this package and machine */
function check(ready: string, variant: 'cpu' | 'cuda', source: string): void {
  const folder = inspectLibtorch(ready);
  if (typeof folder === 'string') {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${source} ${folder}: it must be a wheel of torch or a libtorch ${libtorchVersion}`,
    );
  }
  if (folder.version !== null && !isVersion(folder.version, libtorchVersion)) {
    throw new TorchError(
      'ERR_LIBTORCH_VERSION',
      `${source} is libtorch ${folder.version}; this version of torchformer needs ` +
        `${libtorchVersion}. Give a libtorch of that version, or leave --from out to have it fetched.`,
    );
  }
  if (variant === 'cuda' && !folder.cuda) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${source} is a CPU build: it has no lib/${ownPlatform.libraries.torchCuda}. ` +
        'Give the CUDA build, or set up without --cuda.',
    );
  }
  const problem = libraryProblem(folder);
  if (problem !== null) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${source} cannot be used: ${problem}. Fetch a whole libtorch ${libtorchVersion} for ` +
        `${process.platform} ${process.arch}, or leave --from out to have it fetched.`,
    );
  }
}

async function moveIntoPlace(ready: string, entry: string, work: string): Promise<void> {
  // A process that has the old libraries open keeps them: they lose their name, not their content.
  if (isThere(entry)) await rename(entry, join(work, 'replaced'));
  await rename(ready, entry);
}
