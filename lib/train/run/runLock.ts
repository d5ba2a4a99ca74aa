/** Locks a folder for one training run: two would remove and replace each other's models. */
import { realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TorchError } from '../../runtime/errors.js';
import { holderOf, isRunning, removeSilent, tryLock, type LockHolder } from '../../runtime/lock.js';

/** Held while a training run uses a folder. */
export interface RunLock {
  /** @throws TorchError ERR_CHECKPOINT if another training run has taken over the folder */
  check(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Acquires the lock of an existing folder. A lock whose process has ended is ignored. A process on
 * another host is alive if it updates the file, which takes some seconds to observe: a restarted
 * container has another host name.
 *
 * @param shown the name of the folder in messages
 * @throws TorchError ERR_CHECKPOINT if another training run holds the lock
 */
export async function lockRun(folder: string, shown: string): Promise<RunLock> {
  const path = join(await realpath(folder), '.training.lock');
  for (;;) {
    const lock = await tryLock(path, 'ERR_CHECKPOINT');
    if (lock !== null) {
      const check = async () => {
        if (await lock.isHeld()) return;
        throw fault(
          `${shown}: another training run has taken over this folder; nothing more is saved`,
        );
      };
      return { check, release: () => lock.release() };
    }
    const holder = await holderOf(path);
    // Released in the meantime.
    if (holder === null) continue;
    // Its process was killed while it wrote the file, or another one is taking it over: it is free, or
    // has a holder, after ten seconds at most.
    if (isUnsettled(holder)) {
      await sleep(100);
      continue;
    }
    const isForeign = holder.host !== null && holder.host !== hostname();
    if (isForeign && (await removeSilent(path))) continue;
    throw fault(
      `${shown}: ${describe(holder)} is training in this folder; choose another one` +
        (holder.pid === process.pid && !isForeign ? '' : ` (if that is wrong, remove ${path})`),
    );
  }
}

/** Whether a lock has no owner yet, or one that has ended. */
function isUnsettled({ pid, host }: LockHolder): boolean {
  if (pid === null || host === null) return true;
  return host === hostname() && !isRunning(pid);
}

function describe({ pid, host }: LockHolder): string {
  if (pid === null || host === null) return 'another process';
  if (host !== hostname()) return `process ${pid} on ${host}`;
  return pid === process.pid ? 'another Trainer in this process' : `process ${pid}`;
}

function fault(message: string): TorchError {
  return new TorchError('ERR_CHECKPOINT', message);
}
