/** Participants run as separate processes, one after another, and answer with one line of JSON. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A participant failed; the others can still run. */
export class ChildFailed extends Error {}

/**
 * The environment of all participants. With OpenMP's default spinning, results depend on what else is
 * running; the addon sets this count for itself, so the peers get it too.
 */
export function environment(): NodeJS.ProcessEnv {
  const { GOMP_SPINCOUNT, OMP_WAIT_POLICY } = process.env;
  const spinning = GOMP_SPINCOUNT ?? OMP_WAIT_POLICY;
  return spinning === undefined ? { ...process.env, GOMP_SPINCOUNT: '1000' } : process.env;
}

/** Options of a participant besides its arguments. */
export interface ChildOptions {
  /** Seconds after which it is stopped; default: see {@link limitChildren}. */
  readonly seconds?: number;
}

/** Runs a program of this folder (`trainOurs.js`) with this Node.js. */
export function runOurs<T>(
  program: string,
  args: readonly string[],
  options?: ChildOptions,
): Promise<T> {
  return runChild<T>(process.execPath, [ourProgram(program), ...args], options);
}

/** Runs a program of `bench/peers` (`train.py`). */
export function runPeer<T>(
  python: string,
  program: string,
  args: readonly string[],
  options?: ChildOptions,
): Promise<T> {
  return runChild<T>(python, [peerProgram(program), ...args], options);
}

export function ourProgram(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url));
}

export function peerProgram(program: string): string {
  return fileURLToPath(new URL(`../../bench/peers/${program}`, import.meta.url));
}

let limit = 600;

/** Sets the seconds after which a participant is stopped. */
export function limitChildren(seconds: number): void {
  limit = seconds;
}

/**
 * Runs a participant; it does not outlive this process.
 *
 * @throws ChildFailed after the limit, or with the reason from its standard error
 */
export async function runChild<T>(
  command: string,
  args: readonly string[],
  { seconds = limit }: ChildOptions = {},
): Promise<T> {
  const child = spawn(command, args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = (): void => void child.kill('SIGKILL');
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill();
  }, seconds * 1000);
  process.once('exit', kill);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const end = await new Promise<string | null>((resolve) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ENOENT' ? `${command} was not found` : error.message);
    });
    child.on('close', (code, signal) => {
      resolve(code === 0 ? null : signal === null ? `exit code ${code}` : signal);
    });
  });
  clearTimeout(timer);
  process.off('exit', kill);
  if (late)
    throw new ChildFailed(
      `not finished after ${seconds.toFixed(0)} s; raise the limit with --limit`,
    );
  if (end !== null) throw new ChildFailed(`${end}: ${reasonIn(errors)}`);
  try {
    return JSON.parse(lastLines(output, 1)[0] ?? '') as T;
  } catch {
    throw new ChildFailed(`the last line of its output is not JSON: ${output.slice(-200)}`);
  }
}

/** The error line of a stack trace in any of the languages. */
export function reasonIn(errors: string): string {
  const lines = lastLines(errors, 60);
  return (
    lines.findLast((line) => /^(\w+\.)*\w*(Error|Exception)\b/.test(line)) ??
    (lines.at(-1) || 'no message')
  );
}

function lastLines(text: string, count: number): string[] {
  return text.trimEnd().split('\n').slice(-count);
}
