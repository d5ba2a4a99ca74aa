/** Free disk space: checked before large files are written, and reported if it runs out. */
import { readFile, statfs } from 'node:fs/promises';
import { TorchError } from './errors.js';

/**
 * @param bytes how much will be written to the file system of `folder`
 * @param purpose for the message: `unpacking torch.whl`
 * @throws TorchError ERR_NATIVE_LOAD with both sizes and the fix
 */
export async function checkSpace(folder: string, bytes: number, purpose: string): Promise<void> {
  const free = await freeBytes(folder);
  if (free === null || free >= bytes) return;
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `${purpose} needs ${size(bytes)}, but the disk of ${folder} has ${size(free)} free; ${fix}`,
  );
}

/** Explains system errors of disk space and permissions; returns others unchanged. */
export async function explainWriteFault(error: unknown, folder: string): Promise<unknown> {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof TorchError || !(error instanceof Error)) return error;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const free = await freeBytes(folder);
    const figure = free === null ? '' : ` (${size(free)} free)`;
    const what = code === 'ENOSPC' ? 'the disk is full' : 'your disk quota is used up';
    return new TorchError('ERR_NATIVE_LOAD', `${what}${figure} at ${folder}; ${fix}`, {
      cause: error,
    });
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new TorchError(
      'ERR_NATIVE_LOAD',
      `${folder} is not writable (${message}); set TORCHFORMER_CACHE to a writable folder`,
      { cause: error },
    );
  }
  return error;
}

const fix = 'free some space, or set TORCHFORMER_CACHE to a folder on another disk';

/** Null if the system does not report it. */
export async function freeBytes(folder: string): Promise<number | null> {
  try {
    const { bavail, bsize, blocks } = await statfs(folder);
    // Some network file systems do not report it.
    return blocks === 0 ? null : bavail * bsize;
  } catch {
    return null;
  }
}

/** The most bytes that a file of this process may have (`ulimit -f`); Infinity where none are known. */
export async function largestFile(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const [, bytes] = /^Max file size\s+(\d+)/m.exec(limits) ?? [];
  return bytes === undefined ? Infinity : Number(bytes);
}

/** `812 MB`, `3.2 GB`. */
export function size(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  return bytes >= 1e6 ? `${Math.round(bytes / 1e6)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
}
