/** Fetches wheels with pip, so that mirrors, proxies and caches the user set up for it hold here. */
import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from './makeFolder.js';
import { TorchError } from './errors.js';

/**
 * Downloads wheels into `folder`; pip's progress is shown on standard error.
 *
 * @param requirements as pip takes them, e.g. `torch==2.13.0`
 * @param options `dependencies`: also what the wheels require; default false
 * @returns the paths of the wheels
 * @throws TorchError ERR_NATIVE_LOAD with the way to set up without a network
 */
export async function downloadWheels(
  python: string,
  requirements: readonly string[],
  folder: string,
  options: { dependencies?: boolean } = {},
): Promise<readonly string[]> {
  await makeFolder(folder);
  const args = ['-m', 'pip', 'download', '--only-binary=:all:', '--dest', folder];
  if (options.dependencies !== true) args.push('--no-deps');
  if (
    !(await pip(python, [...args, ...requirements])) &&
    !(await pip(python, [...args, ...anyPython(), ...requirements]))
  ) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `pip could not fetch ${requirements.join(', ')}; its reason stands above. Without a network, ` +
        'copy the wheel or an unpacked libtorch of that version to this machine and run ' +
        '`npx torchformer setup --from <file or folder>`, or set TORCHFORMER_LIBTORCH to the folder.',
    );
  }
  const names = await readdir(folder);
  return names.filter((name) => name.endsWith('.whl')).map((name) => join(folder, name));
}

/** Our use of the wheel runs no Python, so one for another Python does when there is none for this. */
function anyPython(): readonly string[] {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
  return ['--python-version', '3.12', '--platform', `manylinux_2_28_${machine}`];
}

/** Runs pip; whether it ended well. */
async function pip(python: string, args: readonly string[]): Promise<boolean> {
  // Standard output belongs to the command that called set-up.
  const child = spawn(python, args, { stdio: ['ignore', 2, 2] });
  return await new Promise<boolean>((resolve, reject) => {
    child.on('error', reject).on('close', (status) => resolve(status === 0));
  });
}
