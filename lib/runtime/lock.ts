/** Locks between processes and threads: files that name their owner, who touches them regularly. */
import { randomUUID } from 'node:crypto';
import { lstat, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { TorchError, type TorchErrorCode } from './errors.js';

/** The owner of a lock touches it at this interval, so that others see that it is alive. */
export const heartbeat = 10_000;
/**
 * A lock that was not touched for this long is stale. This also holds on the same machine: after a
 * restart, the owner's process id may belong to another process.
 */
const lockLifetime = 6 * heartbeat;
/** Checking whether a lock is stale takes much less than this. */
const takeoverLifetime = 10_000;

/** The locks that this thread holds. */
const held = new Set<string>();

/** A lock that has been taken. */
export interface HeldLock {
  /** Whether it is still held: a process that was suspended for minutes may have lost it. */
  isHeld(): Promise<boolean>;
  /** Releases the lock, unless another owner has taken it over. */
  release(): Promise<void>;
}

/**
 * Takes the lock file `path`. A stale lock is taken over; only one of several simultaneous attempts
 * succeeds.
 *
 * @param code of the error if `path` exists and is not a file
 * @returns null while another owner holds it
 */
export async function tryLock(
  path: string,
  code: TorchErrorCode = 'ERR_NATIVE_LOAD',
): Promise<HeldLock | null> {
  // Unlike a process id, this is never reused.
  const own = `${process.pid} ${hostname()} ${randomUUID()}`;
  while (!(await take(path, own, code))) {
    if (!(await removeIf(path, () => isStale(path)))) return null;
  }
  held.add(path);
  const beating = setInterval(() => {
    const now = new Date();
    // If the file or its disk is gone, the work itself will fail.
    utimes(path, now, now).catch(() => undefined);
  }, heartbeat).unref();
  const isHeld = async () => (await contentOf(path)) === own;
  return {
    isHeld,
    release: async () => {
      clearInterval(beating);
      held.delete(path);
      if (await isHeld()) await rm(path, { force: true });
    },
  };
}

/**
 * Runs `action` while holding the lock file `path`. If the owner of the lock has ended, one of the
 * waiting processes takes it over.
 *
 * @param waiting called once if another owner holds the lock, with a description of it and the file
 * @throws TorchError ERR_NATIVE_LOAD if `path` exists and is not a file
 */
export async function withLock<T>(
  path: string,
  waiting: (holder: string) => void,
  action: () => Promise<T>,
): Promise<T> {
  let reported = false;
  let lock: HeldLock | null;
  while ((lock = await tryLock(path)) === null) {
    if (!reported) waiting(describeHolder(await holderOf(path), path));
    reported = true;
    await sleep(300);
  }
  try {
    return await action();
  } finally {
    await lock.release();
  }
}

async function take(path: string, owner: string, code: TorchErrorCode): Promise<boolean> {
  let made = false;
  try {
    const handle = await open(path, 'wx');
    made = true;
    try {
      await handle.writeFile(owner);
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    // Others would wait for a lock without an owner.
    if (made) await rm(path, { force: true });
    if (made || (error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await refuseOther(path, code);
    return false;
  }
}

/** A folder or a link would never go away, so waiting for it would not end. */
async function refuseOther(path: string, code: TorchErrorCode): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there === null || there.isFile()) return;
  const kind = there.isDirectory() ? 'a folder' : 'not a regular file';
  throw new TorchError(
    code,
    `${path} is ${kind}, but must be a lock file: remove it and try again`,
  );
}

/** The owner of a lock. */
export interface LockHolder {
  /** Null, like `host`, if the lock file is empty. */
  readonly pid: number | null;
  readonly host: string | null;
}

/** The owner of a lock, or null if it has been released. */
export async function holderOf(path: string): Promise<LockHolder | null> {
  const content = await contentOf(path);
  if (content === null) return null;
  const [pid, host] = content.split(' ');
  return host === undefined ? { pid: null, host: null } : { pid: Number(pid), host };
}

function describeHolder(holder: LockHolder | null, path: string): string {
  const owner =
    holder === null || holder.pid === null ? 'an unknown process' : `process ${holder.pid}`;
  const host = holder?.host ?? hostname();
  return `${owner}${host === hostname() ? '' : ` on ${host}`}, lock file ${path}`;
}

/** Null if it does not exist. */
async function contentOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the lock file ${path} cannot be read (${(error as Error).message}): if no process of another ` +
        'user is using it, remove it',
      { cause: error },
    );
  }
}

/**
 * Watches a lock for more than one heartbeat, and removes it if it was not touched. For locks of
 * other hosts, whose processes cannot be checked.
 *
 * @returns whether the lock may be free now
 */
export async function removeSilent(path: string): Promise<boolean> {
  const before = await touchedAt(path);
  await sleep(1.2 * heartbeat);
  return removeIf(path, async () => (await touchedAt(path)) === before);
}

/**
 * Removes a lock on a condition. Only one process may check and remove at a time: a second one with
 * an outdated check would remove the lock that the first one has taken since.
 *
 * @returns whether the lock may be free now
 */
async function removeIf(path: string, condition: () => Promise<boolean>): Promise<boolean> {
  if (!(await condition())) return false;
  const guard = `${path}.takeover`;
  if (!(await take(guard, `${process.pid} ${hostname()}`, 'ERR_NATIVE_LOAD'))) {
    if ((await age(guard)) <= takeoverLifetime) return false;
    await rm(guard, { force: true });
    return true;
  }
  try {
    if (await condition()) await rm(path, { force: true });
  } finally {
    await rm(guard, { force: true });
  }
  return true;
}

async function isStale(path: string): Promise<boolean> {
  const content = await contentOf(path);
  // Released in the meantime.
  if (content === null) return false;
  const [pid, host] = content.split(' ');
  // Empty: the owner is about to write its name, or ended before it did.
  if (pid === undefined || host === undefined) return (await age(path)) > takeoverLifetime;
  const sinceTouched = await age(path);
  if (host !== hostname()) return sinceTouched > lockLifetime;
  if (Number(pid) !== process.pid) return !isRunning(Number(pid)) || sinceTouched > lockLifetime;
  // In a container, each start may have the same process id. Another thread may hold it, though.
  if (held.has(path)) return false;
  return sinceTouched > Math.min(lockLifetime, process.uptime() * 1000);
}

/**
 * Milliseconds since the file was written or touched; 0 if it does not exist. A time in the future,
 * left by a wrong clock, counts by its distance.
 */
async function age(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => Math.abs(Date.now() - mtimeMs),
    () => 0,
  );
}

/** Null if it does not exist. */
async function touchedAt(path: string): Promise<number | null> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => null,
  );
}

/** Whether a process of this machine is running. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is running as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
