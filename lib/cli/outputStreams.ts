/** What a command does when nobody takes its output any more, or the disk behind it is full. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Watches the standard streams of a command while it runs. */
export interface WatchedOutput {
  /** The first fault of standard output, once all writes are settled; null: none, or a closed pipe. */
  fault(): Promise<NodeJS.ErrnoException | null>;
}

/**
 * Keeps faults of the standard streams from ending the process. Progress on standard error that
 * nobody reads is lost, and the work goes on: a training of hours must not end with its terminal.
 * A reader of standard output that has gone, as `head` does, has had enough; any other fault there
 * means a lost result.
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
