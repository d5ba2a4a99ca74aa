/** Runs the doctor's probe and reports how it ended, even if it crashed. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ProbeFact } from './doctorProbe.js';

/** The result of a probe. */
export interface ProbeResult {
  readonly facts: readonly ProbeFact[];
  /** Why it ended early; null if it completed. */
  readonly problem: string | null;
  /** Whether the process crashed or ran into the time limit, rather than reporting an error. */
  readonly crashed: boolean;
}

/** Runs the probe with these environment variables, for at most `seconds`. */
export async function probeRuntime(
  environment: NodeJS.ProcessEnv,
  seconds: number,
): Promise<ProbeResult> {
  const script = fileURLToPath(new URL('./doctorProbe.js', import.meta.url));
  const child = spawn(process.execPath, [script], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
  (child.stdio[3] as NodeJS.ReadableStream)
    .setEncoding('utf8')
    .on('data', (text: string) => (output += text));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, seconds * 1000);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.on('error', reject).on('close', (...end) => resolve(end));
  });
  clearTimeout(timer);

  // A crash may truncate the last line.
  const lines = output.split('\n').slice(0, -1);
  const facts = lines.map((line) => JSON.parse(line) as ProbeFact);
  const step = facts.findLast((fact) => fact.kind === 'step')?.step ?? 'starting Node.js';
  const fault = facts.find((fact) => fact.kind === 'fault');
  if (fault !== undefined) return { facts, problem: fault.message, crashed: false };
  if (late) {
    const problem = `${step} took longer than ${seconds} s and was stopped`;
    return { facts, problem, crashed: true };
  }
  if (code === 0) return { facts, problem: null, crashed: false };
  const end = signal === null ? `ended the process with exit code ${code}` : `crashed (${signal})`;
  const last = errors.trim().split('\n').at(-1) ?? '';
  return { facts, problem: `${step} ${end}${last === '' ? '' : `: ${last}`}`, crashed: true };
}
