/** Ctrl-C and other requests to stop a command as an AbortSignal. */
import { constants } from 'node:os';

type Interrupt = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGUSR1' | 'SIGUSR2';
/**
 * Besides SIGINT (Ctrl-C) and SIGTERM, these are SIGHUP of a closed terminal, and the signals that
 * batch systems send some time before they end a job (Slurm and others SIGUSR1, LSF and Grid Engine
 * SIGUSR2). Without a handler, Node.js opens its debugger on SIGUSR1. SIGQUIT ends immediately, as
 * usual.
 */
const interrupts: readonly Interrupt[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];

/** A closing terminal sends SIGHUP, and its shell sends it again: both are one request. */
const hangUpTime = 1000;

/**
 * Runs `work` with an AbortSignal that the first of {@link interrupts} aborts. The handlers are
 * then removed, so a second one ends the process immediately.
 *
 * After an interrupt, the exit code is the one that shells expect (130 for Ctrl-C).
 *
 * @param notice printed to standard error on the first one
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
    if (name === 'SIGHUP') ignoreHangUps(hangUpTime);
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

function ignoreHangUps(milliseconds: number): void {
  const ignore = () => undefined;
  process.on('SIGHUP', ignore);
  setTimeout(() => process.removeListener('SIGHUP', ignore), milliseconds).unref();
}
