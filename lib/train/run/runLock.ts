/** Keeps two trainings out of one folder: each would remove and replace the other's models. */
import { open, readFile, realpath, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { TorchError } from '../../runtime/errors.js';
import { isRunning } from '../../runtime/lock.js';

/** Locks that this thread holds. */
const held = new Set<string>();

/** An owner has this time between making its lock and writing its name in it. */
const namingTime = 10_000;

/** Held while a training writes to a folder. */
export interface RunLock {
  release(): Promise<void>;
}

/**
 * Takes the lock of a folder that exists. A lock whose process has ended counts for nothing, and
 * so does one of another host: whether its process lives cannot be told, and a container that is
 * started anew has another name.
 *
 * @param shown what messages call the folder
 * @throws TorchError ERR_CHECKPOINT if another training of this host holds it
 */
export async function lockRun(folder: string, shown: string): Promise<RunLock> {
  const path = join(await realpath(folder), '.training.lock');
  if (held.has(path)) {
    throw new TorchError(
      'ERR_CHECKPOINT',
      `${shown}: another Trainer of this process is training into this folder; choose another one`,
    );
  }
  // Before the first wait, for the others of this thread.
  held.add(path);
  try {
    while (!(await take(path))) {
      const owner = await livingOwner(path);
      if (owner !== null) {
        throw new TorchError(
          'ERR_CHECKPOINT',
          `${shown}: ${owner} is training into this folder; choose another one ` +
            `(if that is not so, remove ${path})`,
        );
      }
      await rm(path, { force: true });
    }
  } catch (error) {
    held.delete(path);
    throw error;
  }
  return {
    release: async () => {
      await rm(path, { force: true });
      held.delete(path);
    },
  };
}

async function take(path: string): Promise<boolean> {
  let made = false;
  try {
    const handle = await open(path, 'wx');
    made = true;
    try {
      await handle.writeFile(`${process.pid} ${hostname()}`);
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    if (made) await rm(path, { force: true });
    else if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** What holds the lock, null if it is gone or nobody can know. */
async function livingOwner(path: string): Promise<string | null> {
  let content: string;
  let age: number;
  try {
    content = await readFile(path, 'utf8');
    age = Date.now() - (await stat(path)).mtimeMs;
  } catch {
    // Released between two looks.
    return null;
  }
  if (content === '') return age < namingTime ? 'another process' : null;
  const [pid, host] = content.split(' ');
  // Our own number: a process of before a restart of the container had it, or another thread.
  if (host !== hostname() || Number(pid) === process.pid) return null;
  return isRunning(Number(pid)) ? `process ${pid}` : null;
}
