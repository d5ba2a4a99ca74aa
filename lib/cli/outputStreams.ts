/** Handles standard streams that are closed, or whose disk is full. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Watches the standard streams of a command while it runs. */
export interface WatchedOutput {
  /** The first error of standard output after all writes; null: none, or only a closed pipe. */
  fault(): Promise<NodeJS.ErrnoException | null>;
}

/**
 * Keeps errors of the standard streams from ending the process. Progress on a closed standard error
 * is lost, but the work continues: a training of hours must not end with its terminal. A reader of
 * standard output may close it early, as `head` does; any other error there means a lost result.
 */
export function watchOutput(): WatchedOutput {
  let first: NodeJS.ErrnoException | null = null;
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') first ??= error;
  });
  return {
    async fault() {
      await nextTurn();
      return first;
    },
  };
}
