/** Brings libtorch into the cache that all copies of the package on this machine share. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import {
  access,
  constants,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { makeFolder } from './makeFolder.js';
import { unpackLibtorch } from './archive.js';
import { TorchError } from './errors.js';
import { inspectLibtorch, isVersion, type LibtorchFolder } from './libtorchFolder.js';
import { isRunning, withLock } from './lock.js';
import { checkBoolean, checkOptions } from './options.js';
import { cacheEntry, libtorchVersion } from './package.js';
import { downloadWheels } from './pip.js';
import { findPython, pythonCandidates } from './python.js';

/** Options of {@link setUpLibtorch}. */
export interface SetupOptions {
  /** Which build. Default `cpu`: it is 2 % of the CUDA build's size, and runs everywhere. */
  variant?: 'cpu' | 'cuda';
  /**
   * Where libtorch comes from: a folder (used where it is, not copied), a wheel, a zip archive, or
   * the URL of one of these two. Default: the pinned wheel, by pip.
   */
  from?: string;
  /** The SHA-256 that the download must have; needed with a URL, checked with a file too. */
  sha256?: string;
  /** Whether to replace what the cache has. Default: only when `from` is given. */
  force?: boolean;
  /** Takes lines of progress. Default: none. */
  log?: (line: string) => void;
}

/**
 * Finds or fetches libtorch {@link libtorchVersion} into the cache. Two set-ups at once are right:
 * the second waits, then finds what the first left. What was begun and broken off leaves nothing
 * that would be taken for a libtorch.
 *
 * @returns the folder in the cache
 * @throws TypeError for wrong options; TorchError ERR_NATIVE_LOAD when it cannot be fetched,
 *   ERR_LIBTORCH_VERSION when `from` holds another version
 */
export async function setUpLibtorch(options: SetupOptions = {}): Promise<LibtorchFolder> {
  checkOptions('setUpLibtorch', options, ['variant', 'from', 'sha256', 'force', 'log']);
  const { variant = 'cpu', from, sha256, log = () => {} } = options;
  if (options.force !== undefined) checkBoolean('setUpLibtorch', 'force', options.force);
  const replace = options.force ?? from !== undefined;
  if (variant !== 'cpu' && variant !== 'cuda') {
    throw new TypeError(`setUpLibtorch: variant must be 'cpu' or 'cuda', got ${String(variant)}`);
  }
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new TypeError('setUpLibtorch: sha256 must be 64 hexadecimal digits');
  }
  if (from !== undefined && isUrl(from) && sha256 === undefined) {
    throw new TypeError('setUpLibtorch: a URL needs sha256, the checksum the download must have');
  }

  const entry = cacheEntry(variant);
  const present = usable(entry);
  if (present !== null && !replace) {
    log(`libtorch is set up already: ${present.root}`);
    return present;
  }
  await makeCache(dirname(entry));
  return await withLock(
    `${entry}.lock`,
    () => log('waiting for another set-up to end'),
    async () => {
      const made = replace ? null : usable(entry);
      if (made !== null) return made;
      await removeLeftovers(dirname(entry));
      const work = join(dirname(entry), `${workPrefix}${process.pid}-${Date.now()}`);
      await mkdir(work);
      try {
        const ready = join(work, 'ready');
        await mkdir(ready);
        await obtain(ready, work, variant, from, sha256, log);
        check(ready, variant, from);
        await moveIntoPlace(ready, entry, work);
      } finally {
        await rm(work, { recursive: true, force: true });
      }
      const folder = usable(entry);
      if (folder === null)
        throw new TorchError('ERR_NATIVE_LOAD', `${entry} vanished during set-up`);
      log(`libtorch ${folder.version ?? libtorchVersion} is in ${folder.root}`);
      return folder;
    },
  );
}

/** @throws TorchError ERR_NATIVE_LOAD naming the folder and the way out */
async function makeCache(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK);
  } catch (error) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the cache folder ${folder} cannot be written to (${(error as Error).message}); ` +
        'set TORCHFORMER_CACHE to a folder that can, or TORCHFORMER_LIBTORCH to a libtorch that ' +
        'is there already',
      { cause: error },
    );
  }
}

/** Fills `ready` with `torch/`, and `nvidia/` beside it where needed. */
async function obtain(
  ready: string,
  work: string,
  variant: 'cpu' | 'cuda',
  from: string | undefined,
  sha256: string | undefined,
  log: (line: string) => void,
): Promise<void> {
  if (from !== undefined && !isUrl(from)) {
    const path = resolve(from);
    if (!existsSync(path)) throw new TorchError('ERR_NATIVE_LOAD', `${path} does not exist`);
    if ((await stat(path)).isDirectory()) return await link(path, ready);
  }

  const python = findPython();
  if (python === null) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `set-up needs Python 3 to fetch and unpack libtorch, and ${pythonCandidates().join(' or ')} does not start. ` +
        'Install it, set TORCHFORMER_PYTHON, or give an unpacked libtorch with `--from <folder>`.',
    );
  }
  const downloads = join(work, 'downloads');
  await mkdir(downloads);
  let archive: string;
  if (from === undefined) {
    log(
      `fetching libtorch ${libtorchVersion} (${variant === 'cpu' ? 'CPU, about 200 MB' : 'CUDA, about 3 GB'}) with pip`,
    );
    // Two signs: a build for the CPU alone comes first where the index has one. Three: only the
    // build without a suffix, which is the CUDA one.
    const requirement = `torch${variant === 'cpu' ? '==' : '==='}${libtorchVersion}`;
    const [wheel] = await downloadWheels(python, [requirement], downloads);
    if (wheel === undefined)
      throw new TorchError('ERR_NATIVE_LOAD', `pip left no wheel for ${requirement}`);
    archive = wheel;
  } else {
    archive = isUrl(from) ? await download(from, downloads, log) : resolve(from);
  }
  if (sha256 !== undefined) await checkSum(archive, sha256);
  log(`unpacking ${basename(archive)}`);
  const { requirements } = await unpackLibtorch(python, archive, ready, variant);
  const nvidia = nvidiaRequirements(requirements, variant);
  if (nvidia.length > 0) {
    log('fetching the NVIDIA libraries that this build needs');
    await addNvidiaLibraries(python, nvidia, ready, downloads);
  }
}

/**
 * The CUDA wheel leaves NVIDIA's libraries to wheels of their own. Even its libtorch_cpu.so needs
 * two of them (runtime and profiler, 15 MB); they work without a GPU. PyPI has no other build for
 * x64 Linux, so this is what set-up for the CPU gets there.
 */
export function nvidiaRequirements(
  requirements: readonly string[],
  variant: 'cpu' | 'cuda',
): readonly string[] {
  if (variant === 'cuda')
    return requirements.filter((line) => /^(nvidia-|cuda-toolkit)/.test(line));
  return requirements
    .filter((line) => line.startsWith('cuda-toolkit'))
    .map((line) => line.replace(/\[[^\]]*\]/, '[cudart,cupti]'));
}

/** Unpacks them to `nvidia/`, where libtorch looks: beside `torch/`. */
async function addNvidiaLibraries(
  python: string,
  wanted: readonly string[],
  ready: string,
  downloads: string,
): Promise<void> {
  const wheels = await downloadWheels(python, wanted, join(downloads, 'nvidia'), {
    dependencies: true,
  });
  for (const wheel of wheels) {
    if (!basename(wheel).startsWith('nvidia_')) continue;
    await unpackLibtorch(python, wheel, ready, 'cuda');
    await rm(wheel);
  }
}

/** A folder stays where it is: the user's own, and the CUDA build has gigabytes around it. */
async function link(path: string, ready: string): Promise<void> {
  const folder = inspectLibtorch(path);
  if (typeof folder === 'string') throw new TorchError('ERR_NATIVE_LOAD', `${path} ${folder}`);
  await symlink(await realpath(folder.root), join(ready, 'torch'));
}

function check(ready: string, variant: 'cpu' | 'cuda', from: string | undefined): void {
  const folder = inspectLibtorch(ready);
  const source = from ?? 'the wheel that pip gave';
  if (typeof folder === 'string') throw new TorchError('ERR_NATIVE_LOAD', `${source} ${folder}`);
  if (folder.version !== null && !isVersion(folder.version, libtorchVersion)) {
    throw new TorchError(
      'ERR_LIBTORCH_VERSION',
      `${source} is libtorch ${folder.version}; this version of torchformer needs ${libtorchVersion}`,
    );
  }
  if (variant === 'cuda' && !folder.cuda) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${source} is a CPU build: it has no lib/libtorch_cuda.so`,
    );
  }
}

async function moveIntoPlace(ready: string, entry: string, work: string): Promise<void> {
  // A process that has the old libraries open keeps them: they lose their name, not their content.
  if (existsSync(entry)) await rename(entry, join(work, 'replaced'));
  try {
    await rename(ready, entry);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Someone who took over the same stale lock was faster, with the same content.
    if ((code === 'ENOTEMPTY' || code === 'EEXIST') && usable(entry) !== null) return;
    throw error;
  }
}

function usable(entry: string): LibtorchFolder | null {
  const folder = inspectLibtorch(entry);
  return typeof folder === 'string' ? null : folder;
}

const workPrefix = '.setup-';

/** Removes what set-ups that were killed left behind. */
async function removeLeftovers(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    if (!name.startsWith(workPrefix)) continue;
    const pid = Number(name.slice(workPrefix.length).split('-')[0]);
    if (!isRunning(pid)) await rm(join(cache, name), { recursive: true, force: true });
  }
}

function isUrl(text: string): boolean {
  return /^https?:\/\//.test(text);
}

async function download(url: string, folder: string, log: (line: string) => void): Promise<string> {
  log(`fetching ${url}`);
  const file = join(folder, basename(new URL(url).pathname) || 'libtorch.zip');
  try {
    const response = await fetch(url);
    if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
    await pipeline(Readable.fromWeb(response.body as never), createWriteStream(file));
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? `${message} (${cause.message})` : message;
    throw new TorchError('ERR_NATIVE_LOAD', `${url} cannot be fetched: ${reason}`, {
      cause: error,
    });
  }
  return file;
}

async function checkSum(file: string, expected: string): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  const actual = hash.digest('hex');
  if (actual !== expected.toLowerCase()) {
    throw new TorchError('ERR_NATIVE_LOAD', `${file} has SHA-256 ${actual}, expected ${expected}`);
  }
}
