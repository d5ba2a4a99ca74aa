import { stat } from 'node:fs/promises';
import { nameOfSource, type ByteSource } from '../data/reading/byteSource.js';
import { TorchError } from '../runtime/errors.js';

/**
 * Refuses an output that cannot be replaced, before work of hours is done for it.
 *
 * @throws RangeError if it is the input
 * @throws TorchError ERR_CHECKPOINT if it is a folder, a device or the like
 */
export async function checkOutputFile(
  owner: string,
  input: ByteSource,
  output: string,
): Promise<void> {
  const found = await stat(output).catch(() => null);
  if (found === null) return;
  if (!found.isFile()) {
    const what = found.isDirectory() ? 'it is a folder' : 'it is not a regular file';
    throw new TorchError('ERR_CHECKPOINT', `cannot save ${output}: ${what}; choose another path`);
  }
  if (typeof input !== 'string' && !(input instanceof URL)) return;
  const source = await stat(input).catch(() => null);
  if (source?.ino === found.ino && source.dev === found.dev) {
    throw new RangeError(
      `${owner}: the output ${output} is the input ${nameOfSource(input)}; choose another path`,
    );
  }
}
