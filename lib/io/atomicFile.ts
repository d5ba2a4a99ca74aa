/** Atomic file writes: a file is always either the complete old one or the complete new one. */
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

/** Receives the bytes of a file in order. */
export type ByteSink = (bytes: Uint8Array) => Promise<void>;

/**
 * Writes `file` through a temporary sibling that is flushed to the disk and then renamed over it.
 * The mode of an existing file is kept; of a symbolic link the target is replaced, not the link.
 *
 * @param write writes the content piece by piece
 * @throws TorchError ERR_CHECKPOINT naming the file and the reason (disk full, no permission, …);
 *   the old file is then unchanged and the temporary file removed
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
    // The umask would apply to a mode passed to `open`.
    if (mode !== null) await handle.chmod(mode);
    await flush(handle);
  } finally {
    await handle.close();
  }
}

/** Not `handle.sync()`: the handles that yarn's Plug'n'Play substitutes lack it. */
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

/** Makes a rename in `folder` survive a power failure. */
export async function flushFolder(folder: string): Promise<void> {
  // Windows cannot open folders, and does not need this.
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

/** The absolute path that a symbolic link leads to (which need not exist), or else the path itself. */
export async function resolveLink(path: string): Promise<string> {
  let current = resolve(path);
  // The limit of Linux.
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
  EDQUOT: 'the disk quota is exceeded',
  EFBIG: 'the file would be larger than the system allows',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'the file system is read-only',
  ENOENT: 'the folder does not exist',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'it is a folder',
  EEXIST: 'a file with that name already exists',
  ELOOP: 'its symbolic links form a cycle',
};

/** The error of a failed save: names the target and the reason, and says that nothing was lost. */
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
