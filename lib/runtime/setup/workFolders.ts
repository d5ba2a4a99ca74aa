/** The temporary folders and unfinished downloads of setup in the cache. */
import { readdir, rm, rmdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../lock.js';

const prefix = '.setup-';
/**
 * After this time a folder is stale, even if it belongs to another machine or if its process id is
 * in use, because it may have been reused.
 */
const lifetime = 24 * 60 * 60_000;

/** A name with the owner, so that others can see whether the folder is stale. */
export function workFolderName(): string {
  return `${prefix}${process.pid}-${Date.now()}-${hostname()}`;
}

/** The folder where downloads are kept until a setup has used them. */
export function downloadsFolder(cache: string): string {
  return join(cache, 'downloads');
}

/** Removes the folders of setups that were killed. */
export async function removeLeftovers(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const match = /^\.setup-(\d+)-(\d+)-(.+)$/.exec(name);
    if (match === null) continue;
    const [, pid, time, host] = match;
    const old = Date.now() - Number(time) > lifetime;
    const isStale = old || (host === hostname() && !isRunning(Number(pid)));
    if (isStale) await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Removes used downloads, and their folder if it is empty. */
export async function removeDownloads(cache: string, files: readonly string[]): Promise<void> {
  for (const file of files) await rm(file, { force: true });
  await rmdir(downloadsFolder(cache)).catch(() => undefined);
}
