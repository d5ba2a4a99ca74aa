import { statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder and the ones above it that are missing. Harmless where it exists.
 *
 * Not `mkdir(path, { recursive: true })`: in a file system that answers ENOENT to every new name,
 * such as /proc, Node tries that for ever, in a thread that no signal reaches.
 *
 * @returns the folders that it made, the outermost first
 * @throws the system's error; ENOTDIR or EEXIST where a file stands in the way
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

/** What is at `path`; null when nothing is, be it that a file stands where a folder should. */
export function kindOf(path: string): 'file' | 'folder' | null {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}
