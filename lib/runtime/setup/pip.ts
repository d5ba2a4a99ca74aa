/** Downloads wheels with pip, which uses the user's configured mirrors, proxies and caches. */
import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../makeFolder.js';
import { anyPython } from './offline.js';

/** Options of {@link downloadWheels}. */
export interface PipOptions {
  /** Whether to download the requirements of the wheels too. Default false. */
  readonly dependencies?: boolean;
  /** The index to use instead of the one in pip's configuration. */
  readonly indexUrl?: string | undefined;
}

/**
 * Downloads wheels to `folder`; pip's output is shown on standard error.
 *
 * @param requirements in pip's syntax, e.g. `torch==2.13.0`
 * @returns the paths of the wheels; null if pip failed and printed the reason on standard error
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

/** Whether this Python has pip, which some systems do not install. */
export async function hasPip(python: string): Promise<boolean> {
  return await run(python, ['-m', 'pip', '--version'], 'ignore');
}

/** Runs pip; returns whether it succeeded. */
async function pip(python: string, args: readonly string[]): Promise<boolean> {
  // Standard output is for the command that runs setup.
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
