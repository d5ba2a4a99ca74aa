/** What the routes share. */
import { setMaxListeners } from 'node:events';
import { ApiKeys } from './apiKeys.js';
import { ModelList, parsePair, type ListedModel } from './modelList.js';
import { ModelPool } from './modelPool.js';
import { RequestError } from './requestError.js';
import type { ServedTranslator } from './servedTranslator.js';
import { ServerMetrics } from './serverMetrics.js';
import type { ServeSettings } from './serveOptions.js';
import { WorkQueue } from './workQueue.js';

/** The parts of a server, and whether it is stopping. */
export class ServerContext {
  readonly settings: ServeSettings;
  readonly keys: ApiKeys;
  readonly models: ModelList;
  readonly queue: WorkQueue;
  readonly pool: ModelPool;
  readonly metrics: ServerMetrics;
  /** Whether the server takes no new requests. */
  isStopping = false;
  /** Aborts work that is still running when the server has waited long enough for it. */
  readonly ending = new AbortController();

  constructor(settings: ServeSettings) {
    const { models, apiKeys, maxModels } = settings;
    this.settings = settings;
    this.keys = new ApiKeys(apiKeys);
    this.models = new ModelList(models);
    this.queue = new WorkQueue(settings);
    this.pool = new ModelPool({ maxModels, load: (pair) => this.#load(pair) });
    this.metrics = new ServerMetrics(this.queue, this.pool);
    // Every running request listens to it.
    setMaxListeners(0, this.ending.signal);
  }

  /** The models that are listed, and those that are in memory although their folder has gone. */
  async listModels(): Promise<readonly ListedModel[]> {
    const listed = await this.models.all();
    const inMemory = this.pool.pairs.flatMap((pair) => {
      const languages = parsePair(pair);
      const isListed = listed.some((model) => model.pair === pair);
      return languages === null || isListed ? [] : [{ pair, ...languages, folder: '' }];
    });
    return [...listed, ...inMemory];
  }

  /** A model that cannot be loaded is no fault of the request, so it is status 503, and logged. */
  async #load(pair: string): Promise<ServedTranslator> {
    const started = performance.now();
    try {
      const listed = (await this.models.all()).find((model) => model.pair === pair);
      if (listed === undefined) throw new Error('its folder is no longer there');
      const translator = await this.settings.load(listed.folder);
      this.metrics.modelLoads.add({ pair, result: 'ok' });
      this.metrics.modelLoadSeconds.observe({ pair }, (performance.now() - started) / 1000);
      return translator;
    } catch (error) {
      this.metrics.modelLoads.add({ pair, result: 'error' });
      throw new RequestError(503, `The model ${pair} cannot be loaded`, {
        cause: error,
        retryAfter: 30,
      });
    }
  }
}
