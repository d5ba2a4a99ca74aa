/** Installs libtorch in the cache that all copies of the package on this machine share. */
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
  /** Which build. Default `cpu`, which is 2 % of the CUDA build's size and runs everywhere. */
  variant?: 'cpu' | 'cuda';
  /**
   * Where to get libtorch from: a folder that contains it (used in place, not copied), a folder of
   * wheels, a wheel, a zip or tar.gz archive, or the URL of one of these. Default: the npm package
   * with the libraries if it is installed, else the pinned wheel, with pip or from `indexUrl`.
   */
  from?: string;
  /**
   * The SHA-256 of the file. A URL requires it, here or as `#sha256=…` at its end; for other files
   * it is optional.
   */
  sha256?: string;
  /**
   * The simple URL of the Python package index to download the pinned wheel from. Default:
   * `PIP_INDEX_URL`, or the index in pip's configuration.
   */
  indexUrl?: string;
  /** Whether to replace what the cache has. Default: only if `from` is given. */
  force?: boolean;
  /** Whether the C++ headers are needed, for a build. Default false. */
  headers?: boolean;
  /** Called with each line of progress. Default: progress is not reported. */
  log?: (line: string) => void;
}

/**
 * Finds libtorch {@link libtorchVersion}, or downloads it to the cache. Several processes may call
 * this at once: the others wait for the first, then use its result. An interrupted setup leaves no
 * incomplete libtorch, and an interrupted download is continued.
 *
 * @returns the folder, in the cache or of the npm package
 * @throws TypeError for invalid options; TorchError ERR_NATIVE_LOAD if libtorch cannot be
 *   downloaded, ERR_LIBTORCH_VERSION if `from` contains another version
 */
export async function setUpLibtorch(options: SetupOptions = {}): Promise<LibtorchFolder> {
  checkSetupOptions(options);
  const { variant = 'cpu', from, sha256, indexUrl, headers = false, log = () => {} } = options;
  const replace = options.force ?? from !== undefined;

  const lookAt = (folder: string): LibtorchFolder | string => inspect(folder, variant, headers);
  // Without a home folder there is no cache, and it is not needed if nothing has to be downloaded.
  const cached = replace ? null : entryOrNull(variant);
  if (!replace) {
    const present = cached === null ? 'no cache' : lookAt(cached);
    if (typeof present !== 'string') {
      log(`libtorch is already set up: ${present.root}`);
      return present;
    }
    const installed = variant === 'cpu' ? resolvePackage(libtorchPackage) : null;
    const packaged = installed === null ? 'not installed' : lookAt(installed);
    if (typeof packaged !== 'string') {
      log(`libtorch is already in the npm package ${libtorchPackage}: ${packaged.root}`);
      return packaged;
    }
    if (cached !== null && isThere(cached)) log(`replacing ${cached}: ${present}`);
  }

  const entry = cacheEntry(variant);
  const cache = dirname(entry);
  await makeCache(cache);
  return await withLock(
    `${entry}.lock`,
    (holder) => log(`waiting for another setup to end (${holder})`),
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
        // An empty folder is of no use to the next setup.
        await removeDownloads(cache, []);
      }
      await removeDownloads(cache, used);
      const folder = inspect(entry, variant, false);
      if (typeof folder === 'string') {
        throw new TorchError('ERR_NATIVE_LOAD', `${entry} ${folder} after setup; try again`);
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

/** Whether `path` exists, even if it is a broken link. */
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
      `${owner}: a URL needs sha256, the checksum of the download, or #sha256=… at its end`,
    );
  }
  if (sha256 !== undefined && inUrl !== undefined && sha256.toLowerCase() !== inUrl.toLowerCase()) {
    throw new TypeError(`${owner}: sha256 differs from the checksum in the URL, ${inUrl}`);
  }
}

/** Rejects a source that is neither a path nor an http:// or https:// URL. */
function checkSource(owner: string, from: unknown): void {
  const wanted = 'from must be a folder, a file, or an http:// or https:// URL';
  if (typeof from !== 'string') {
    throw new TypeError(`${owner}: ${wanted}, got ${from === null ? 'null' : typeof from}`);
  }
  if (from === '') throw new TypeError(`${owner}: ${wanted}, got an empty string`);
  const [, scheme] = /^([a-z][a-z0-9+.-]+):\/\//i.exec(from) ?? [];
  if (scheme === undefined || (isUrl(from) && URL.canParse(from))) return;
  if (isUrl(from)) throw new TypeError(`${owner}: ${wanted}, got an incomplete URL`);
  // The message does not include the URL, which may contain a password.
  const fix = scheme.toLowerCase() === 'file' ? 'pass only the path' : 'download the file first';
  throw new TypeError(`${owner}: ${wanted}, got one with ${scheme}://; ${fix}`);
}

/** A folder that can be used as it is, or why it cannot. */
function inspect(path: string, variant: 'cpu' | 'cuda', headers: boolean): LibtorchFolder | string {
  const folder = inspectLibtorch(path);
  if (typeof folder === 'string') return folder;
  if (folder.version !== null && !isVersion(folder.version, libtorchVersion)) {
    return `is libtorch ${folder.version}, but ${libtorchVersion} is needed`;
  }
  if (variant === 'cuda' && !folder.cuda) return `has no lib/${ownPlatform.libraries.torchCuda}`;
  if (headers && !folder.headers) return 'has no include/, which a build needs';
  return libraryProblem(folder) ?? folder;
}

/** @throws TorchError ERR_NATIVE_LOAD naming the folder and the fix */
async function makeCache(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const isFile = ['EEXIST', 'ENOTDIR'].includes(code) && kindOf(folder) === 'file';
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the cache folder ${folder} is not writable (${(error as Error).message}` +
        `${isFile ? '; it is a file' : ''}); ` +
        'set TORCHFORMER_CACHE to a writable folder, or TORCHFORMER_LIBTORCH to an existing ' +
        'libtorch',
      { cause: error },
    );
  }
}

/** @throws TorchError if `ready` does not contain a libtorch for this package and machine */
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
        `${libtorchVersion}. Pass a libtorch of that version, or omit --from to download it.`,
    );
  }
  if (variant === 'cuda' && !folder.cuda) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${source} is a CPU build: it has no lib/${ownPlatform.libraries.torchCuda}. ` +
        'Pass the CUDA build, or omit --cuda.',
    );
  }
  const problem = libraryProblem(folder);
  if (problem !== null) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${source} cannot be used: ${problem}. Pass a complete libtorch ${libtorchVersion} for ` +
        `${process.platform} ${process.arch}, or omit --from to download it.`,
    );
  }
}

async function moveIntoPlace(ready: string, entry: string, work: string): Promise<void> {
  // A process that has the old libraries open keeps them, because renaming keeps their content.
  if (isThere(entry)) await rename(entry, join(work, 'replaced'));
  await rename(ready, entry);
}
