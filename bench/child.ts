/** Participants run as processes of their own, one after the other, and answer with one line of JSON. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A participant did not come to an end; the others still can. */
export class ChildFailed extends Error {}

/**
 * What all participants find in their environment. OpenMP's default spinning makes figures hang on
 * what else runs; the addon sets this count for itself, so the peers get it too.
 */
export function environment(): NodeJS.ProcessEnv {
  const { GOMP_SPINCOUNT, OMP_WAIT_POLICY } = process.env;
  const spinning = GOMP_SPINCOUNT ?? OMP_WAIT_POLICY;
  return spinning === undefined ? { ...process.env, GOMP_SPINCOUNT: '1000' } : process.env;
}

/** What a participant may be given besides its arguments. */
export interface ChildOptions {
  /** Seconds after which it is ended; default: see {@link limitChildren}. */
  readonly seconds?: number;
}

/** Runs a program of this folder (`trainOurs.js`) with this Node. */
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

/** Sets after how many seconds a participant is ended. */
export function limitChildren(seconds: number): void {
  limit = seconds;
}

/**
 * Runs a participant; it does not outlive this process.
 *
 * @throws ChildFailed after the limit, or with the reason found in its standard error
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
    throw new ChildFailed(`not done after ${seconds.toFixed(0)} s; --limit gives it more time`);
  if (end !== null) throw new ChildFailed(`${end}: ${reasonIn(errors)}`);
  try {
    return JSON.parse(lastLines(output, 1)[0] ?? '') as T;
  } catch {
    throw new ChildFailed(`no JSON in the last line of its output: ${output.slice(-200)}`);
  }
}

/** The error among the lines of a stack, whichever language wrote it. */
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
