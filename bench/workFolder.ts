/** The folder for weights and batches while a suite runs. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** Calls `use` with the given folder, or with a temporary one that is removed afterwards. */
export async function withWorkFolder<T>(
  given: string | undefined,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  if (given !== undefined) {
    const folder = resolve(given);
    await mkdir(folder, { recursive: true });
    return use(folder);
  }
  const folder = await mkdtemp(join(tmpdir(), 'torchformer-bench-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
