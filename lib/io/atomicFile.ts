/** Files that are always the old or the new complete one, whatever happens while they are written. */
import { fsync } from 'node:fs';
import {
  lstat,
  open,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  type FileHandle,
} from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { TorchError } from '../runtime/errors.js';
import { releaseTemporary, removeStaleTemporaries, temporarySibling } from './temporary.js';

/** Takes the bytes of a file in order. */
export type ByteSink = (bytes: Uint8Array) => Promise<void>;

/**
 * Writes `file` through a temporary sibling that is flushed to the disk and then renamed over it.
 * The mode of an existing file is kept; of a symbolic link the target is replaced, not the link.
 *
 * @param write hands over the content piece by piece
 * @throws TorchError ERR_CHECKPOINT naming the file and the reason (disk full, no permission, …);
 *   the old file is then untouched and the temporary removed
 */
export async function writeFileAtomically(
  file: string,
  write: (sink: ByteSink) => Promise<void>,
): Promise<void> {
  try {
    const target = await resolveLink(file);
    await removeStaleTemporaries(target);
    const temporary = temporarySibling(target);
    try {
      await writeAndFlush(temporary, write, await modeOf(target));
      await rename(temporary, target);
      await flushFolder(dirname(target));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    } finally {
      releaseTemporary(temporary);
    }
  } catch (error) {
    throw saveFault(file, error);
  }
}

/** Writes a new file and waits until it is on the disk. */
export async function writeAndFlush(
  path: string,
  write: (sink: ByteSink) => Promise<void>,
  mode: number | null = null,
): Promise<void> {
  const handle = await open(path, 'wx');
  try {
    await write((bytes) => writeAll(handle, bytes));
    // The mode set by `open` would pass through the umask.
    if (mode !== null) await handle.chmod(mode);
    await flush(handle);
  } finally {
    await handle.close();
  }
}

/** Not `handle.sync()`: yarn's Plug'n'Play puts handles of its own in place, which lack it. */
async function flush(handle: FileHandle): Promise<void> {
  await promisify(fsync)(handle.fd);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.byteLength) {
    const result = await handle.write(bytes, written, bytes.byteLength - written);
    written += result.bytesWritten;
  }
}

/** Makes a rename in `folder` survive a power cut. */
export async function flushFolder(folder: string): Promise<void> {
  // Windows cannot open folders, and its renames need no such step.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await flush(handle);
  } finally {
    await handle.close();
  }
}

/** The permission bits of an existing file or folder, null if there is none. */
export async function modeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mode & 0o7777;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The path that a symbolic link leads to (which need not exist), else the path itself, absolute. */
export async function resolveLink(path: string): Promise<string> {
  let current = resolve(path);
  // As many steps as Linux follows.
  for (let step = 0; step < 40; step++) {
    try {
      return await realpath(current);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    const status = await lstat(current).catch(() => null);
    if (status === null || !status.isSymbolicLink()) return current;
    current = resolve(dirname(current), await readlink(current));
  }
  throw new TorchError('ERR_CHECKPOINT', `${path}: too many levels of symbolic links`);
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space left on the device',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than the system allows',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'the file system is read-only',
  ENOENT: 'the folder does not exist',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'it is a folder',
  EEXIST: 'a file with that name is there',
  ELOOP: 'its symbolic links run in a circle',
};

/** What a failed save throws: the target, the reason, and that nothing was lost. */
export function saveFault(target: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || error instanceof TorchError || error instanceof TypeError) {
    return error as Error;
  }
  const reason = reasons[code];
  return new TorchError(
    'ERR_CHECKPOINT',
    `cannot save ${target}: ${reason === undefined ? message : `${reason} (${message})`}; ` +
      'what was there before is unchanged',
    { cause: error },
  );
}
