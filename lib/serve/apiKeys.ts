/** The keys that clients must send, if the server asks for any. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { TorchError } from '../runtime/errors.js';
import { RequestError } from './requestError.js';

/** Checks the keys of requests. */
export class ApiKeys {
  /** Digests, so that the time of a comparison says nothing about a key. */
  readonly #digests: ReadonlySet<string> | null;

  /** @param keys the valid keys; null: no key is needed */
  constructor(keys: readonly string[] | null) {
    this.#digests = keys === null ? null : new Set(keys.map(digest));
  }

  /** Whether requests need a key. */
  get required(): boolean {
    return this.#digests !== null;
  }

  /**
   * @param key the key that the request has, if any
   * @throws RequestError 400 without a key, 403 with a wrong one, as LibreTranslate has it
   */
  check(key: unknown): void {
    if (this.#digests === null) return;
    if (key === undefined || key === null || key === '') {
      throw new RequestError(400, 'Please contact the server operator to get an API key');
    }
    if (typeof key !== 'string' || !this.#digests.has(digest(key))) {
      throw new RequestError(403, 'Invalid API key');
    }
  }
}

/**
 * Reads a file with a key in each line; empty lines and those that begin with `#` are ignored.
 *
 * @throws TorchError ERR_DATA if it cannot be read, or has no key
 */
export async function readApiKeys(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new TorchError('ERR_DATA', `the API keys cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  });
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.trim());
  const keys = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (keys.length === 0) {
    throw new TorchError('ERR_DATA', `${file} has no API key; write one in each line`);
  }
  return keys;
}

function digest(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
