/** One process at a time does a piece of work; the others wait for it. */
import { open, readFile, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** A lock of another machine on a shared disk counts as left behind after this time. */
const foreignLockLifetime = 60 * 60_000;

/**
 * Runs `action` while holding the lock file `path`. A lock whose process is gone is taken over: two
 * waiters may then both take it, so `action` must be right (if wasteful) when run twice at once.
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
    if (await isLeftBehind(path)) {
      await rm(path, { force: true });
      continue;
    }
    if (!told) waiting();
    told = true;
    await sleep(300);
  }
  try {
    return await action();
  } finally {
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

async function isLeftBehind(path: string): Promise<boolean> {
  let content: string;
  let age: number;
  try {
    content = await readFile(path, 'utf8');
    age = Date.now() - (await stat(path)).mtimeMs;
  } catch {
    // Released between two looks.
    return false;
  }
  const [pid, host] = content.split(' ');
  // Empty: the owner is about to write, or died before it did.
  if (pid === undefined || host === undefined) return age > 10_000;
  return host === hostname() ? !isRunning(Number(pid)) : age > foreignLockLifetime;
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
