import { statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * Creates a folder and its missing parents. Does nothing if the folder exists.
 *
 * `mkdir(path, { recursive: true })` is not used: in a file system that returns ENOENT for every
 * new name, such as /proc, Node.js retries forever, in a thread that cannot be interrupted.
 *
 * @returns the folders that were created, the outermost first
 * @throws the system's error; ENOTDIR or EEXIST if there is a file of that name
 */
export async function makeFolder(path: string): Promise<string[]> {
  try {
    await mkdir(path);
    return [path];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') {
      if ((await stat(path)).isDirectory()) return [];
      throw error;
    }
    const parent = dirname(resolve(path));
    if (code !== 'ENOENT' || (await exists(parent))) throw error;
    return [...(await makeFolder(parent)), ...(await makeFolder(path))];
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** What is at `path`; null if there is nothing, also if one of its parents is a file. */
export function kindOf(path: string): 'file' | 'folder' | null {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}
