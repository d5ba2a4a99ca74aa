/** Lists and removes what setup has in the cache. */
import { existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { searchLibtorch } from '../native/findLibtorch.js';
import { inspectLibtorch } from '../native/libtorchFolder.js';
import { withLock } from '../lock.js';
import { cacheEntry, cacheFolder } from '../package.js';
import { downloadsFolder, removeLeftovers } from './workFolders.js';

/** One build of libtorch in the cache. */
export interface CacheEntry {
  readonly version: string;
  readonly variant: 'cpu' | 'cuda';
  readonly path: string;
  /** Its size on disk; 0 for a link to a folder elsewhere. */
  readonly bytes: number;
  /** The folder elsewhere that it links to; null if it is in the cache itself. */
  readonly linkedTo: string | null;
  /** Whether this package would load it. */
  readonly inUse: boolean;
  /** Why it cannot be used; null if it can. */
  readonly problem: string | null;
}

/** The content of the cache. */
export interface CacheList {
  readonly cache: string;
  readonly entries: readonly CacheEntry[];
  /** Interrupted downloads, which setup can continue. */
  readonly downloads: readonly { readonly path: string; readonly bytes: number }[];
}

const entryName = /^libtorch-(.+)-(cpu|cuda)$/;

/** Lists the cache without loading or changing anything. */
export function listCache(): CacheList {
  const cache = cacheFolder();
  const used = searchLibtorch().found?.root ?? null;
  const entries = namesIn(cache).flatMap((name) => {
    const [, version, variant] = entryName.exec(name) ?? [];
    if (version === undefined || (variant !== 'cpu' && variant !== 'cuda')) return [];
    const path = join(cache, name);
    const folder = inspectLibtorch(path);
    return [
      {
        version,
        variant,
        path,
        bytes: bytesBelow(path),
        linkedTo: linkTarget(join(path, 'torch')),
        inUse: typeof folder !== 'string' && folder.root === used,
        problem: typeof folder === 'string' ? folder : null,
      } satisfies CacheEntry,
    ];
  });
  const folder = downloadsFolder(cache);
  const downloads = namesIn(folder)
    .filter((name) => !/\.(json|lock|takeover)$/.test(name))
    .map((name) => ({ path: join(folder, name), bytes: bytesBelow(join(folder, name)) }));
  return { cache, entries, downloads };
}

/**
 * Removes entries from the cache, after waiting for a running setup. A folder elsewhere that an
 * entry links to is kept.
 *
 * @param what the build that this package uses for the CPU or for CUDA; `'all'`: all versions of
 *   both, and the leftovers of interrupted setups
 * @returns the removed paths
 */
export async function removeFromCache(
  what: 'cpu' | 'cuda' | 'all',
  log: (line: string) => void,
): Promise<readonly string[]> {
  const cache = cacheFolder();
  if (!existsSync(cache)) return [];
  const entries =
    what === 'all'
      ? namesIn(cache)
          .filter((name) => entryName.test(name))
          .map((name) => join(cache, name))
      : [cacheEntry(what)].filter((path) => lstatSync(path, { throwIfNoEntry: false }));
  for (const path of entries) {
    await withLock(
      `${path}.lock`,
      (holder) => log(`waiting for a setup to end (${holder})`),
      () => rm(path, { recursive: true, force: true }),
    );
  }
  if (what !== 'all') return entries;
  await removeLeftovers(cache);
  const downloads = downloadsFolder(cache);
  if (!existsSync(downloads)) return entries;
  const removed = namesIn(downloads).filter((name) => name.endsWith('.lock')).length === 0;
  if (removed) await rm(downloads, { recursive: true, force: true });
  else log(`${downloads} is kept: a setup is downloading to it`);
  return removed ? [...entries, downloads] : entries;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

/** Links count 0 bytes, because their targets are not ours. */
function bytesBelow(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isSymbolicLink()) return 0;
  if (!stat.isDirectory()) return stat.size;
  return namesIn(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0);
}

function linkTarget(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? realpathSync(path) : null;
  } catch {
    return null;
  }
}
