/** Keeps two trainings out of one folder: each would remove and replace the other's models. */
import { realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { TorchError } from '../../runtime/errors.js';
import { holderOf, removeSilent, tryLock, type LockHolder } from '../../runtime/lock.js';

/** Held while a training writes to a folder. */
export interface RunLock {
  /** @throws TorchError ERR_CHECKPOINT if another training has taken the folder over */
  check(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Takes the lock of a folder that exists. A lock whose process has ended counts for nothing. Whether
 * one of another host lives is seen by its touching the file, which takes some seconds: a container
 * that is started anew has another name.
 *
 * @param shown what messages call the folder
 * @throws TorchError ERR_CHECKPOINT if another training holds it
 */
export async function lockRun(folder: string, shown: string): Promise<RunLock> {
  const path = join(await realpath(folder), '.training.lock');
  for (;;) {
    const lock = await tryLock(path, 'ERR_CHECKPOINT');
    if (lock !== null) {
      const check = async () => {
        if (await lock.isHeld()) return;
        throw fault(`${shown}: another training has taken this folder over; nothing more is saved`);
      };
      return { check, release: () => lock.release() };
    }
    const holder = await holderOf(path);
    // Released between two looks.
    if (holder === null) continue;
    const isForeign = holder.host !== null && holder.host !== hostname();
    if (isForeign && (await removeSilent(path))) continue;
    throw fault(
      `${shown}: ${describe(holder)} is training into this folder; choose another one` +
        (holder.pid === process.pid && !isForeign ? '' : ` (if that is not so, remove ${path})`),
    );
  }
}

function describe({ pid, host }: LockHolder): string {
  if (pid === null || host === null) return 'another process';
  if (host !== hostname()) return `process ${pid} on ${host}`;
  return pid === process.pid ? 'another Trainer of this process' : `process ${pid}`;
}

function fault(message: string): TorchError {
  return new TorchError('ERR_CHECKPOINT', message);
}
