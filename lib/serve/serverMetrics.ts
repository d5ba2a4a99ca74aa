/** What the server counts and times. */
import { LoopDelay } from './loopDelay.js';
import { Metrics } from './metrics.js';
import type { ModelPool } from './modelPool.js';
import type { WorkQueue } from './workQueue.js';

/** The metrics of a server. */
export class ServerMetrics {
  readonly #metrics = new Metrics();
  readonly #loopDelay = new LoopDelay();
  /** As of this reading. */
  #delays = this.#loopDelay.read();
  readonly requests = this.#metrics.counter(
    'torchformer_requests_total',
    'Requests by route and status.',
  );
  readonly requestSeconds = this.#metrics.seconds(
    'torchformer_request_seconds',
    'Time from the request to the end of the response.',
  );
  readonly texts = this.#metrics.counter(
    'torchformer_texts_total',
    'Texts translated, by language pair.',
  );
  readonly characters = this.#metrics.counter(
    'torchformer_characters_total',
    'Characters translated, by language pair.',
  );
  readonly modelLoads = this.#metrics.counter(
    'torchformer_model_loads_total',
    'Models loaded, by language pair and result.',
  );
  readonly modelLoadSeconds = this.#metrics.seconds(
    'torchformer_model_load_seconds',
    'Time to load a model.',
  );

  constructor(queue: WorkQueue, pool: ModelPool) {
    const metrics = this.#metrics;
    metrics.gauge('torchformer_requests_running', 'Requests worked on.', () => queue.running);
    metrics.gauge('torchformer_requests_waiting', 'Requests that wait.', () => queue.waiting);
    metrics.gauge('torchformer_models_loaded', 'Models in memory.', () => pool.pairs.length);
    metrics.gauge(
      'torchformer_event_loop_delay_seconds_p99',
      'Delay of the event loop that 99 % do not exceed, since the last reading.',
      () => this.#delays.p99,
    );
    metrics.gauge(
      'torchformer_event_loop_delay_seconds_max',
      'Longest delay of the event loop since the last reading.',
      () => this.#delays.max,
    );
    metrics.gauge('process_resident_memory_bytes', 'Resident memory.', () =>
      process.memoryUsage.rss(),
    );
    metrics.gauge(
      'process_cpu_seconds_total',
      'User and system time.',
      () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
      'counter',
    );
  }

  /** All metrics in Prometheus's text format. */
  text(): string {
    this.#delays = this.#loopDelay.read();
    return this.#metrics.text();
  }

  /** Ends the timer of the event loop's delay. */
  close(): void {
    this.#loopDelay.close();
  }
}
