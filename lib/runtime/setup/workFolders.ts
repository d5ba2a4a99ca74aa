/** What set-up has in the cache besides the results: folders to work in, and unfinished downloads. */
import { readdir, rm, rmdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../lock.js';

const prefix = '.setup-';
/**
 * After this time a folder is left behind, be it of another machine or with the number of a process
 * that lives: it may be another one by now.
 */
const lifetime = 24 * 60 * 60_000;

/** A name that tells whose it is, so that others can see whether it was left behind. */
export function workFolderName(): string {
  return `${prefix}${process.pid}-${Date.now()}-${hostname()}`;
}

/** Where downloads are kept until a set-up has used them. */
export function downloadsFolder(cache: string): string {
  return join(cache, 'downloads');
}

/** Removes what set-ups that were killed left behind. */
export async function removeLeftovers(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const match = /^\.setup-(\d+)-(\d+)-(.+)$/.exec(name);
    if (match === null) continue;
    const [, pid, time, host] = match;
    const old = Date.now() - Number(time) > lifetime;
    const left = old || (host === hostname() && !isRunning(Number(pid)));
    if (left) await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Removes downloads that were used, and their folder when nothing else is in it. */
export async function removeDownloads(cache: string, files: readonly string[]): Promise<void> {
  for (const file of files) await rm(file, { force: true });
  await rmdir(downloadsFolder(cache)).catch(() => undefined);
}
