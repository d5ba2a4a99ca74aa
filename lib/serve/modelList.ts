/** Which language pairs have a model, and where. */
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { TorchError } from '../runtime/errors.js';

/** A model that can be served. */
export interface ListedModel {
  /** Source and target, such as `'de-en'`, or `'pt_BR-en'` where a code has a hyphen. */
  readonly pair: string;
  /** Code of the source language, such as `'de'` or `'pt-BR'`. */
  readonly source: string;
  readonly target: string;
  readonly folder: string;
}

/** How long a listing of the folder is used, in milliseconds. */
const freshTime = 1000;

/** Two codes of languages, in which an underscore stands for a hyphen. */
const pairName = /^([A-Za-z]{2,8}(?:_[A-Za-z0-9]{1,8})*)-([A-Za-z]{2,8}(?:_[A-Za-z0-9]{1,8})*)$/;

/** Source and target of a pair's name; null if it is not one. */
export function parsePair(name: string): { source: string; target: string } | null {
  const [, source, target] = pairName.exec(name) ?? [];
  if (source === undefined || target === undefined) return null;
  return { source: source.replaceAll('_', '-'), target: target.replaceAll('_', '-') };
}

/**
 * The models of a folder (`<folder>/de-en`, `<folder>/en-zh`), which may come and go while the server
 * runs, or of a fixed list.
 */
export class ModelList {
  readonly #models: string | Readonly<Record<string, string>>;
  #listed: Promise<readonly ListedModel[]> | null = null;
  #listedAt = -Infinity;

  /** @param models a folder of model folders, or pair → model folder */
  constructor(models: string | Readonly<Record<string, string>>) {
    this.#models = models;
  }

  /**
   * @throws TorchError ERR_DATA if the folder does not exist, or is itself a model
   */
  async check(owner: string): Promise<void> {
    if (typeof this.#models !== 'string') return;
    const names = await readdir(this.#models).catch((error: unknown) => {
      throw new TorchError(
        'ERR_DATA',
        `${owner}: models: ${(error as Error).message}; it must be a folder with a model folder for ` +
          'each pair of languages, such as de-en',
        { cause: error },
      );
    });
    if (!names.includes('config.json') && !names.includes('history.json')) return;
    throw new TorchError(
      'ERR_DATA',
      `${owner}: models: ${this.#models} is itself a model; name its pair of languages: ` +
        `{ "de-en": "${this.#models}" }`,
    );
  }

  /** All models, in order of their pairs. */
  async all(): Promise<readonly ListedModel[]> {
    const now = performance.now();
    if (this.#listed === null || now - this.#listedAt > freshTime) {
      this.#listedAt = now;
      this.#listed = this.#list();
    }
    return this.#listed;
  }

  async #list(): Promise<readonly ListedModel[]> {
    const folders =
      typeof this.#models === 'string'
        ? await foldersIn(this.#models)
        : Object.entries(this.#models).map(([pair, folder]) => [pair, resolve(folder)] as const);
    return folders
      .flatMap(([pair, folder]) => {
        const languages = parsePair(pair);
        return languages === null ? [] : [{ pair, ...languages, folder }];
      })
      .sort((a, b) => (a.pair < b.pair ? -1 : 1));
  }
}

/** Name and path of each folder in a folder; none if it does not exist (any more). */
async function foldersIn(parent: string): Promise<(readonly [string, string])[]> {
  const entries = await readdir(parent, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => [name, join(resolve(parent), name)] as const);
}
