/** Fetches wheels with pip, so that mirrors, proxies and caches the user set up for it hold here. */
import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../makeFolder.js';
import { anyPython } from './offline.js';

/** Options of {@link downloadWheels}. */
export interface PipOptions {
  /** Also what the wheels require. Default false. */
  readonly dependencies?: boolean;
  /** The index to use, in place of pip's own configuration. */
  readonly indexUrl?: string | undefined;
}

/**
 * Downloads wheels into `folder`; pip's progress is shown on standard error.
 *
 * @param requirements as pip takes them, e.g. `torch==2.13.0`
 * @returns the paths of the wheels; null when pip failed, and its reason stands on standard error
 */
export async function downloadWheels(
  python: string,
  requirements: readonly string[],
  folder: string,
  options: PipOptions = {},
): Promise<readonly string[] | null> {
  await makeFolder(folder);
  const args = ['-m', 'pip', 'download', '--only-binary=:all:', '--dest', folder];
  if (options.dependencies !== true) args.push('--no-deps');
  if (options.indexUrl !== undefined) args.push('--index-url', options.indexUrl);
  if (
    !(await pip(python, [...args, ...requirements])) &&
    // There may be no wheel for this Python.
    !(await pip(python, [...args, ...anyPython(), ...requirements]))
  ) {
    return null;
  }
  const names = await readdir(folder);
  return names.filter((name) => name.endsWith('.whl')).map((name) => join(folder, name));
}

/** Whether this Python has pip: some systems leave it out. */
export async function hasPip(python: string): Promise<boolean> {
  return await run(python, ['-m', 'pip', '--version'], 'ignore');
}

/** Runs pip; whether it ended well. */
async function pip(python: string, args: readonly string[]): Promise<boolean> {
  // Standard output belongs to the command that called set-up.
  return await run(python, args, 2);
}

async function run(
  program: string,
  args: readonly string[],
  output: 2 | 'ignore',
): Promise<boolean> {
  const child = spawn(program, args, { stdio: ['ignore', output, output] });
  return await new Promise<boolean>((resolve, reject) => {
    child.on('error', reject).on('close', (status) => resolve(status === 0));
  });
}
