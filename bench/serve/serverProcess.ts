/** The server of suite `serve`, a process of its own. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ChildFailed, environment, reasonIn } from '../child.js';
import { source, target } from './servedLanguages.js';

/** Milliseconds for the server to start, and to stop. */
const patience = 30_000;

/** Options of {@link withServer}. */
export interface ServerOptions {
  /** Model or run folder. */
  readonly folder: string;
  readonly threads: number;
}

/**
 * Starts `torchformer serve` on a free port of 127.0.0.1, calls `use` with its address, and stops it. The
 * server does not outlive this process.
 *
 * @throws ChildFailed if it does not start, or has ended before `use`
 */
export async function withServer<T>(
  { folder, threads }: ServerOptions,
  use: (address: string) => Promise<T>,
): Promise<T> {
  const program = fileURLToPath(new URL('../../../bin/torchformer.js', import.meta.url));
  const model = `${source}-${target}=${folder}`;
  const child = spawn(
    process.execPath,
    [program, 'serve', '--model', model, '--port', '0', '--threads', String(threads)],
    { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      errors += error.message;
      resolve();
    });
    child.once('close', () => resolve());
  });
  try {
    const address = new Promise<string>((resolve) => {
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        const found = /^listening on (\S+)$/m.exec(output)?.[1];
        if (found !== undefined) resolve(found);
      });
    });
    const started = await within(Promise.race([address, ended]));
    if (typeof started !== 'string') {
      throw new ChildFailed(`torchformer serve does not listen: ${reasonIn(errors)}`);
    }
    const result = await use(started);
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new ChildFailed(`torchformer serve has ended: ${reasonIn(errors)}`);
    }
    return result;
  } finally {
    child.kill('SIGTERM');
    await within(ended);
    kill();
    process.off('exit', kill);
  }
}

/** The promise's value; undefined after {@link patience}. */
async function within<T>(promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), patience);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
