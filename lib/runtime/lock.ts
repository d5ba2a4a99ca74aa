/** One process at a time does a piece of work; the others wait for it. */
import { open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** The owner of a lock touches it this often, so that other machines see that it lives. */
const heartbeat = 10_000;
/** A lock of another machine on a shared disk that nobody touched for so long is left behind. */
const foreignLockLifetime = 6 * heartbeat;
/** Who looks at a lock that may be left behind needs a moment, not this long. */
const takeoverLifetime = 10_000;

/**
 * Runs `action` while holding the lock file `path`. A lock whose process is gone is taken over, by
 * one of those that wait.
 *
 * @param waiting called once when another process holds the lock
 */
export async function withLock<T>(
  path: string,
  waiting: () => void,
  action: () => Promise<T>,
): Promise<T> {
  let told = false;
  while (!(await take(path))) {
    if (await removeLeftBehind(path)) continue;
    if (!told) waiting();
    told = true;
    await sleep(300);
  }
  const beating = setInterval(() => {
    const now = new Date();
    // Gone with its folder, or the disk is away: the action will find out.
    utimes(path, now, now).catch(() => undefined);
  }, heartbeat).unref();
  try {
    return await action();
  } finally {
    clearInterval(beating);
    await rm(path, { force: true });
  }
}

async function take(path: string): Promise<boolean> {
  try {
    const handle = await open(path, 'wx');
    await handle.writeFile(`${process.pid} ${hostname()}`);
    await handle.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
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
  if (!(await take(guard))) {
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
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch {
    // Released between two looks.
    return false;
  }
  const [pid, host] = content.split(' ');
  // Empty: the owner is about to write, or died before it did.
  if (pid === undefined || host === undefined) return (await age(path)) > takeoverLifetime;
  return host === hostname() ? !isRunning(Number(pid)) : (await age(path)) > foreignLockLifetime;
}

/** Milliseconds since it was written or touched; 0 when it is gone. */
async function age(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
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
