/** Locks between processes and threads: files that name their owner, who touches them while it lives. */
import { randomUUID } from 'node:crypto';
import { lstat, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { TorchError, type TorchErrorCode } from './errors.js';

/** The owner of a lock touches it this often, so that others see that it lives. */
export const heartbeat = 10_000;
/**
 * A lock that nobody touched for so long is left behind. On the same machine too: after a restart
 * its owner's number may be that of another process.
 */
const lockLifetime = 6 * heartbeat;
/** Who looks at a lock that may be left behind needs a moment, not this long. */
const takeoverLifetime = 10_000;

/** Locks that this thread holds. */
const held = new Set<string>();

/** A lock that has been taken. */
export interface HeldLock {
  /** Whether it still is: a process that was suspended for minutes may have lost it. */
  isHeld(): Promise<boolean>;
  /** Gives it back; another's lock that is there by now stays. */
  release(): Promise<void>;
}

/**
 * Takes the lock file `path`, also from an owner that is gone: of those who try that at the same
 * time, one gets it.
 *
 * @param code of the error when something else than a file has the name of the lock
 * @returns null while another holds it
 */
export async function tryLock(
  path: string,
  code: TorchErrorCode = 'ERR_NATIVE_LOAD',
): Promise<HeldLock | null> {
  // Unlike the number of a process, this is nobody else's later on.
  const own = `${process.pid} ${hostname()} ${randomUUID()}`;
  while (!(await take(path, own, code))) {
    if (!(await removeIf(path, () => isLeftBehind(path)))) return null;
  }
  held.add(path);
  const beating = setInterval(() => {
    const now = new Date();
    // Gone with its folder, or the disk is away: the work will find out.
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
 * Runs `action` while holding the lock file `path`. A lock whose process is gone is taken over, by
 * one of those that wait.
 *
 * @param waiting called once when another holds the lock; gets the owner and the lock file, in words
 * @throws TorchError ERR_NATIVE_LOAD when something else than a file has the name of the lock
 */
export async function withLock<T>(
  path: string,
  waiting: (holder: string) => void,
  action: () => Promise<T>,
): Promise<T> {
  let told = false;
  let lock: HeldLock | null;
  while ((lock = await tryLock(path)) === null) {
    if (!told) waiting(describeHolder(await holderOf(path), path));
    told = true;
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
    // One without a name would be waited for.
    if (made) await rm(path, { force: true });
    if (made || (error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await refuseOther(path, code);
    return false;
  }
}

/** Neither a folder nor a link will ever go by itself. */
async function refuseOther(path: string, code: TorchErrorCode): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there === null || there.isFile()) return;
  const kind = there.isDirectory() ? 'a folder' : 'no plain file';
  throw new TorchError(
    code,
    `${path} is ${kind}, and a lock file has to be there: remove it and try again`,
  );
}

/** Who has a lock, as far as it says. */
export interface LockHolder {
  /** Null where it has not named itself. */
  readonly pid: number | null;
  readonly host: string | null;
}

/** Who holds a lock; null: nobody by now. */
export async function holderOf(path: string): Promise<LockHolder | null> {
  const content = await contentOf(path);
  if (content === null) return null;
  const [pid, host] = content.split(' ');
  return host === undefined ? { pid: null, host: null } : { pid: Number(pid), host };
}

function describeHolder(holder: LockHolder | null, path: string): string {
  const owner =
    holder === null || holder.pid === null
      ? 'a process that did not name itself'
      : `process ${holder.pid}`;
  const host = holder?.host ?? hostname();
  return `${owner}${host === hostname() ? '' : ` on ${host}`}, lock file ${path}`;
}

/** Null when it is gone. */
async function contentOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the lock file ${path} cannot be read (${(error as Error).message}): if no process of another ` +
        'user is at work, remove it',
      { cause: error },
    );
  }
}

/**
 * Removes a lock that nobody has touched while it was watched for longer than its owner lets pass
 * between two touches. For locks of other hosts, whose processes nobody here can ask for.
 *
 * @returns whether it may be free now
 */
export async function removeSilent(path: string): Promise<boolean> {
  const before = await touchedAt(path);
  await sleep(1.2 * heartbeat);
  return removeIf(path, async () => (await touchedAt(path)) === before);
}

/**
 * Removes a lock on a condition. Only one process may look and remove at a time: a second one that
 * had looked before would remove the lock that the first one has taken since.
 *
 * @returns whether it may be free now
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

async function isLeftBehind(path: string): Promise<boolean> {
  const content = await contentOf(path);
  // Released between two looks.
  if (content === null) return false;
  const [pid, host] = content.split(' ');
  // Empty: the owner is about to write, or died before it did.
  if (pid === undefined || host === undefined) return (await age(path)) > takeoverLifetime;
  const sinceTouched = await age(path);
  if (host !== hostname()) return sinceTouched > lockLifetime;
  if (Number(pid) !== process.pid) return !isRunning(Number(pid)) || sinceTouched > lockLifetime;
  // As in a container, where each start has the same number. Another thread may hold it, though.
  if (held.has(path)) return false;
  return sinceTouched > Math.min(lockLifetime, process.uptime() * 1000);
}

/**
 * Milliseconds since it was written or touched; 0 when it is gone. One that was touched in the
 * future, by a clock that has been put right since, is as old as it is early.
 */
async function age(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => Math.abs(Date.now() - mtimeMs),
    () => 0,
  );
}

/** Null when it is gone. */
async function touchedAt(path: string): Promise<number | null> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => null,
  );
}

/** Whether a process of this machine lives. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives, as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
