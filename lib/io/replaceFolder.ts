/** Atomic replacement: a folder is always either the complete old one or the complete new one. */
import { chmod, cp, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../runtime/makeFolder.js';
import { flushFolder, modeOf, resolveLink, saveFault } from './atomicFile.js';
import {
  findTemporaries,
  isStale,
  releaseTemporary,
  removeStaleTemporaries,
  temporarySibling,
} from './temporary.js';

/**
 * Exchanges two paths atomically.
 * @returns null, or the name of the system error (`ENOSYS` or `EINVAL` if not supported)
 */
export type Exchange = (first: string, second: string) => string | null;

/**
 * Fills a temporary folder next to `folder` and replaces `folder` with it atomically, so that at any
 * moment `folder` is either the complete old or the complete new one. Permission bits of the old folder
 * and files in it that are not ours are kept. A symbolic link is kept; its target is replaced.
 *
 * @param ourFiles names that `fill` may write; old files with these names are always removed
 * @param fill writes the new content to the path it receives
 * @param exchange exchanges two folders; if the system does not support it, two renames are used
 *   instead, and {@link currentFolder} finds the old folder if the process dies between them
 * @throws TorchError ERR_CHECKPOINT naming the folder and the reason; the old folder is unchanged
 */
export async function replaceFolder(
  folder: string,
  ourFiles: readonly string[],
  fill: (temporary: string) => Promise<void>,
  exchange: Exchange,
): Promise<void> {
  try {
    const target = await resolveLink(folder);
    await makeFolder(dirname(target));
    await recover(target);
    await removeStaleTemporaries(target);
    const temporary = temporarySibling(target);
    try {
      await mkdir(temporary);
      await fill(temporary);
      await keepFromOld(target, temporary, ourFiles);
      const mode = await modeOf(target);
      if (mode !== null) await chmod(temporary, mode);
      await flushFolder(temporary);
      await putInPlace(temporary, target, exchange);
      await flushFolder(dirname(target));
    } finally {
      // On success this is the old folder, otherwise the unfinished one. If it cannot be removed, the
      // save is still valid, and the next one tries again.
      await rm(temporary, { recursive: true, force: true }).catch(() => undefined);
      releaseTemporary(temporary);
    }
  } catch (error) {
    throw saveFault(folder, error);
  }
}

async function putInPlace(temporary: string, target: string, exchange: Exchange): Promise<void> {
  if ((await modeOf(target)) === null) {
    await rename(temporary, target);
    return;
  }
  const code = exchange(temporary, target);
  if (code === null) return;
  if (code !== 'ENOSYS' && code !== 'EINVAL') {
    throw Object.assign(new Error(`${code}: exchange ${temporary} with ${target}`), { code });
  }
  const old = temporarySibling(target, 'old');
  try {
    await rename(target, old);
    try {
      await rename(temporary, target);
    } catch (error) {
      await rename(old, target);
      throw error;
    }
    await rm(old, { recursive: true, force: true }).catch(() => undefined);
  } finally {
    releaseTemporary(old);
  }
}

/** Copies the modes of our files, and all files that are not ours. */
async function keepFromOld(
  target: string,
  temporary: string,
  ourFiles: readonly string[],
): Promise<void> {
  for (const name of await readdir(target).catch(() => [])) {
    const [old, fresh] = [join(target, name), join(temporary, name)];
    if (ourFiles.includes(name)) {
      const mode = await modeOf(old);
      if (mode !== null && (await modeOf(fresh)) !== null) await chmod(fresh, mode);
    } else {
      await cp(old, fresh, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    }
  }
}

/** Completes or reverts a replacement by two renames whose process died in between. */
async function recover(target: string): Promise<void> {
  for (const old of await findTemporaries(target, 'old')) {
    if (!isStale(old)) continue;
    if ((await modeOf(target)) === null) await rename(old, target);
    else await rm(old, { recursive: true, force: true });
  }
}

/**
 * The path of the current content of `folder`: the folder itself, or the complete old one if a
 * replacement is, or was interrupted, between its two renames.
 */
export async function currentFolder(folder: string): Promise<string> {
  const target = await resolveLink(folder);
  if ((await modeOf(target)) !== null) return target;
  const olds = await findTemporaries(target, 'old');
  return olds.at(-1) ?? target;
}

/**
 * Reads several files of a folder consistently: if the folder is replaced in the meantime, `read` runs
 * again.
 *
 * @param read receives the path to read from
 * @param discard releases the result of a `read` that is not used
 */
export async function readFolder<T>(
  folder: string,
  read: (path: string) => Promise<T>,
  discard: (result: T) => Promise<void>,
): Promise<T> {
  // Far more than a process that saves continuously can invalidate.
  for (let attempts = 100; ; attempts--) {
    const path = await currentFolder(folder);
    const before = await identity(path);
    let result: T;
    try {
      result = await read(path);
    } catch (error) {
      if (attempts > 0 && (await hasMoved(path, before, folder))) continue;
      throw error;
    }
    if (attempts <= 0 || (await identity(path)) === before) return result;
    await discard(result);
  }
}

/** Whether an error while reading `path` may be due to a concurrent save. */
async function hasMoved(path: string, before: string, folder: string): Promise<boolean> {
  const now = await identity(path);
  if (now !== before) return true;
  const target = await resolveLink(folder);
  // An old folder that a running process is about to remove.
  if (path !== target && !isStale(path)) return true;
  const temporaries = [
    ...(await findTemporaries(target, 'tmp')),
    ...(await findTemporaries(target, 'old')),
  ];
  if (temporaries.some((path) => !isStale(path))) return true;
  // Missing at both checks above, between two renames, and in place before the last one.
  return (await identity(path)) !== before;
}

async function identity(path: string): Promise<string> {
  const status = await stat(path).catch(() => null);
  return status === null ? '' : `${status.dev}:${status.ino}:${status.birthtimeMs}`;
}
