/**
 * Names of temporary files: siblings of the target, so that a rename remains on one file system, with
 * the writer in the name, so that the next save recognizes abandoned ones.
 */
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { isRunning } from '../runtime/lock.js';

let counter = 0;
/** Temporary files that this thread is currently writing. */
const inUse = new Set<string>();

/**
 * Returns an unused path next to `target`: `.model.4711-0-3.tmp`. Call {@link releaseTemporary} after
 * it has been renamed or removed.
 */
export function temporarySibling(target: string, suffix: 'tmp' | 'old' = 'tmp'): string {
  const name = `.${basename(target)}.${process.pid}-${threadId}-${counter++}.${suffix}`;
  const path = join(dirname(target), name);
  inUse.add(path);
  return path;
}

/** Marks a temporary file as no longer being written. */
export function releaseTemporary(path: string): void {
  inUse.delete(path);
}

/** Removes temporary files that killed processes left from earlier saves of `target`. */
export async function removeStaleTemporaries(target: string): Promise<void> {
  for (const path of await findTemporaries(target, 'tmp')) {
    if (isStale(path)) await rm(path, { recursive: true, force: true });
  }
}

/** Paths of all temporary files next to `target`, of any process, sorted by name. */
export async function findTemporaries(target: string, suffix: 'tmp' | 'old'): Promise<string[]> {
  const folder = dirname(target);
  const prefix = `.${basename(target)}.`;
  let names: string[];
  try {
    names = await readdir(folder);
  } catch {
    return [];
  }
  return names
    .filter(
      (name) =>
        name.startsWith(prefix) && /^\d+-\d+-\d+\.(tmp|old)$/.test(name.slice(prefix.length)),
    )
    .filter((name) => name.endsWith(`.${suffix}`))
    .sort()
    .map((name) => join(folder, name));
}

/** Whether the writer of a temporary file has ended. */
export function isStale(path: string): boolean {
  const writer = /\.(\d+)-(\d+)-\d+\.(?:tmp|old)$/.exec(path);
  if (writer === null) return false;
  const pid = Number(writer[1]);
  // In a restarted container the process id is the same as before: a file that this thread does not
  // know is then abandoned. Files of other threads cannot be distinguished and are kept.
  if (pid === process.pid) return Number(writer[2]) === threadId && !inUse.has(path);
  return !isRunning(pid);
}
