/** One process at a time does a piece of work; the others wait for it. */
import { randomUUID } from 'node:crypto';
import { lstat, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { TorchError } from './errors.js';

/** The owner of a lock touches it this often, so that others see that it lives. */
const heartbeat = 10_000;
/**
 * A lock that nobody touched for so long is left behind. On the same machine too: after a restart
 * its owner's number may be that of another process.
 */
const lockLifetime = 6 * heartbeat;
/** Who looks at a lock that may be left behind needs a moment, not this long. */
const takeoverLifetime = 10_000;

/** Locks that this thread holds. */
const held = new Set<string>();

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
  // Unlike the number of a process, this is nobody else's later on.
  const own = `${process.pid} ${hostname()} ${randomUUID()}`;
  let told = false;
  while (!(await take(path, own))) {
    if (await removeLeftBehind(path)) continue;
    if (!told) waiting(await holderOf(path));
    told = true;
    await sleep(300);
  }
  held.add(path);
  const beating = setInterval(() => {
    const now = new Date();
    // Gone with its folder, or the disk is away: the action will find out.
    utimes(path, now, now).catch(() => undefined);
  }, heartbeat).unref();
  try {
    return await action();
  } finally {
    clearInterval(beating);
    held.delete(path);
    // After a long sleep of the machine another process may have it by now.
    if ((await contentOf(path)) === own) await rm(path, { force: true });
  }
}

async function take(path: string, owner: string): Promise<boolean> {
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
    await refuseOther(path);
    return false;
  }
}

/** Neither a folder nor a link will ever go by itself. */
async function refuseOther(path: string): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there === null || there.isFile()) return;
  const kind = there.isDirectory() ? 'a folder' : 'no plain file';
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `${path} is ${kind}, and a lock file has to be there: remove it and try again`,
  );
}

async function holderOf(path: string): Promise<string> {
  const [pid = '', host] = ((await contentOf(path)) ?? '').split(' ');
  const owner = host === undefined ? 'a process that did not name itself' : `process ${pid}`;
  const where = host === undefined || host === hostname() ? '' : ` on ${host}`;
  return `${owner}${where}, lock file ${path}`;
}

/** Null when it is gone. */
async function contentOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the lock file ${path} cannot be read (${(error as Error).message}): if no set-up of another ` +
        'user is at work, remove it',
      { cause: error },
    );
  }
}

/**
 * Removes a lock whose owner is gone. Only one process may look and remove at a time: a second one
 * that had looked before would remove the lock that the first one has taken since.
 *
 * @returns whether it may be free now
 */
async function removeLeftBehind(path: string): Promise<boolean> {
  if (!(await isLeftBehind(path))) return false;
  const guard = `${path}.takeover`;
  if (!(await take(guard, `${process.pid} ${hostname()}`))) {
    if ((await age(guard)) > takeoverLifetime) await rm(guard, { force: true });
    return false;
  }
  try {
    if (await isLeftBehind(path)) await rm(path, { force: true });
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
