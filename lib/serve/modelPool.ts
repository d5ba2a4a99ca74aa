/** The loaded models: loaded when asked for, the least recently used unloaded when there are too many. */
import type { ServedTranslator } from './servedTranslator.js';

/** A model in use; it is not unloaded before {@link ModelLease.release}. */
export interface ModelLease {
  readonly translator: ServedTranslator;
  /** To be called once, at the end of the use. */
  release(): void;
}

interface Entry {
  readonly translator: Promise<ServedTranslator>;
  /** Number of leases. */
  users: number;
  /** Is to be unloaded as soon as nobody uses it, and takes no new users. */
  leaving: boolean;
}

/** Options of {@link ModelPool}. */
export interface ModelPoolOptions {
  /** Number of models in memory at the same time. */
  readonly maxModels: number;
  /** Loads the model of a pair such as `'de-en'`. */
  load(pair: string): Promise<ServedTranslator>;
}

export class ModelPool {
  readonly #options: ModelPoolOptions;
  /** In order of use, the least recent first. */
  readonly #entries = new Map<string, Entry>();
  #waiters: (() => void)[] = [];

  constructor(options: ModelPoolOptions) {
    this.#options = options;
  }

  /** The pairs in memory, including those being loaded. */
  get pairs(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /**
   * The model of a pair. Requests for a pair that is being loaded wait for that one load. If there is
   * no room, the least recently used model takes no new requests, and is unloaded once it has none.
   *
   * @throws the error of the load; the next request tries again
   * @throws the signal's reason if it aborts while waiting
   */
  async acquire(pair: string, signal: AbortSignal): Promise<ModelLease> {
    const entry = await this.#enter(pair, signal);
    // The last in the map is the most recently used.
    this.#entries.delete(pair);
    this.#entries.set(pair, entry);
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      entry.users--;
      if (entry.users > 0) return;
      if (entry.leaving) this.#unload(pair, entry);
      else this.#notify();
    };
    try {
      return { translator: await withSignal(entry.translator, signal), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Unloads all models. They must not be in use. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.allSettled(
      entries.map(async ({ translator }) => {
        await (await translator).dispose();
      }),
    );
  }

  /** The entry of a pair, with one more user, so that it is not unloaded in the meantime. */
  async #enter(pair: string, signal: AbortSignal): Promise<Entry> {
    for (;;) {
      signal.throwIfAborted();
      let entry = this.#entries.get(pair);
      if (entry === undefined && this.#hasRoom()) entry = this.#startLoading(pair);
      if (entry !== undefined && !entry.leaving) {
        entry.users++;
        return entry;
      }
      const change = new Promise<void>((resolve) => this.#waiters.push(resolve));
      await withSignal(change, signal);
    }
  }

  /** Makes room if there is none, now or later. */
  #hasRoom(): boolean {
    const { maxModels } = this.#options;
    if (this.#entries.size < maxModels) return true;
    const entries = [...this.#entries];
    const unused = entries.find(([, { users }]) => users === 0);
    if (unused !== undefined) {
      this.#unload(...unused);
      return this.#entries.size < maxModels;
    }
    const [, oldest] = entries[0] as [string, Entry];
    if (!entries.some(([, { leaving }]) => leaving)) oldest.leaving = true;
    return false;
  }

  #startLoading(pair: string): Entry {
    const translator = this.#options.load(pair);
    const entry: Entry = { translator, users: 0, leaving: false };
    this.#entries.set(pair, entry);
    translator.catch(() => {
      if (this.#entries.get(pair) === entry) this.#entries.delete(pair);
      this.#notify();
    });
    return entry;
  }

  #unload(pair: string, entry: Entry): void {
    if (this.#entries.get(pair) === entry) this.#entries.delete(pair);
    // A model that could not be loaded has nothing to free, and its requests were told.
    void entry.translator.then((translator) => translator.dispose()).catch(() => undefined);
    this.#notify();
  }

  #notify(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}

/** The promise, or a rejection as soon as the signal aborts. */
async function withSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the signal's own reason
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
