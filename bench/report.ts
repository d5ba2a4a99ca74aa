/** Output of the benchmarks: results on standard output, progress and failures on standard error. */
import { ChildFailed } from './child.js';

/** Writes lines of the report. */
export function print(text = ''): void {
  process.stdout.write(`${text}\n`);
}

/** One line of progress. */
export function say(text: string): void {
  process.stderr.write(`[bench] ${text}\n`);
}

/** Participants that failed; they determine the exit code. */
export const failures: string[] = [];

/** The result of a participant; if it failed, null, after recording and printing the failure. */
export async function attempt<T>(name: string, run: () => Promise<T>): Promise<T | null> {
  say(name);
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ChildFailed)) throw error;
    failures.push(`${name}: ${error.message}`);
    say(`${name} failed: ${error.message}`);
    return null;
  }
}
