/**
 * Names for what is being written: a sibling of the target, so that a rename stays on one file
 * system, with the writer in its name, so that the next save knows which ones nobody will finish.
 */
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { isRunning } from '../runtime/lock.js';

let counter = 0;
/** Temporaries that this thread is writing now. */
const inUse = new Set<string>();

/**
 * A fresh path beside `target`: `.model.4711-0-3.tmp`. Call {@link releaseTemporary} when it has
 * been renamed or removed.
 */
export function temporarySibling(target: string, suffix: 'tmp' | 'old' = 'tmp'): string {
  const name = `.${basename(target)}.${process.pid}-${threadId}-${counter++}.${suffix}`;
  const path = join(dirname(target), name);
  inUse.add(path);
  return path;
}

/** Says that nobody writes to the temporary any more. */
export function releaseTemporary(path: string): void {
  inUse.delete(path);
}

/** Removes what killed processes left of earlier saves of `target`. */
export async function removeStaleTemporaries(target: string): Promise<void> {
  for (const path of await findTemporaries(target, 'tmp')) {
    if (isStale(path)) await rm(path, { recursive: true, force: true });
  }
}

/** Paths of all temporaries beside `target`, of any process, in the order of their names. */
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

/** Whether the writer of a temporary is gone. */
export function isStale(path: string): boolean {
  const writer = /\.(\d+)-(\d+)-\d+\.(?:tmp|old)$/.exec(path);
  if (writer === null) return false;
  const pid = Number(writer[1]);
  // A number of our own process comes back after a restart in a container: what this very thread
  // does not know of is then a left-over. Other threads' files cannot be told apart: kept.
  if (pid === process.pid) return Number(writer[2]) === threadId && !inUse.has(path);
  return !isRunning(pid);
}
