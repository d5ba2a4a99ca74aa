/** Ctrl-C of a command as an AbortSignal. */
import { constants } from 'node:os';

type Interrupt = 'SIGINT' | 'SIGTERM';
const interrupts: readonly Interrupt[] = ['SIGINT', 'SIGTERM'];

/**
 * Runs `work` with a signal that the first SIGINT or SIGTERM aborts. The handlers are gone then,
 * so a second one ends the process at once, whatever it is doing.
 *
 * If one came, the exit code becomes what shells expect of an interrupted command (130 for Ctrl-C).
 *
 * @param notice printed to standard error at the first one
 */
export async function withInterrupts<T>(
  notice: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController();
  let received: Interrupt | undefined;
  const onInterrupt = (name: Interrupt) => {
    received = name;
    removeHandlers();
    process.stderr.write(`\n${notice}\n`);
    controller.abort();
  };
  const removeHandlers = () => {
    for (const name of interrupts) process.removeListener(name, onInterrupt);
  };
  for (const name of interrupts) process.on(name, onInterrupt);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (received !== undefined && error === controller.signal.reason) return undefined;
    throw error;
  } finally {
    removeHandlers();
    if (received !== undefined) process.exitCode = 128 + constants.signals[received];
  }
}
