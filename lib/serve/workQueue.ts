/** How much work runs at the same time, and how much waits for it. */
import { RequestError } from './requestError.js';

/** Limits of {@link WorkQueue}. */
export interface WorkQueueOptions {
  /** Requests that are worked on at the same time. */
  readonly concurrency: number;
  /** Requests that wait for one of those to end; 0: none. */
  readonly queueLimit: number;
}

interface Waiter {
  start(): void;
  refuse(reason: unknown): void;
}

/** The longest time, in seconds, that a client is asked to wait before it tries again. */
const longestRetry = 60;

/** Runs a limited number of tasks, makes some wait in order, and refuses the rest. */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<Waiter>();
  #running = 0;
  #idle: (() => void)[] = [];
  /** Seconds that a task took, averaged with more weight on later ones. */
  #meanSeconds = 1;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Number of running tasks. */
  get running(): number {
    return this.#running;
  }

  /** Number of waiting tasks. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for its turn. The caller must call the function that it gets once, at the end of its work.
   *
   * @throws RequestError 503 if too many are waiting
   * @throws the signal's reason if it aborts before the turn
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const { concurrency, queueLimit } = this.#options;
    if (this.#running >= concurrency) {
      if (this.#waiting.size >= queueLimit) {
        throw new RequestError(503, 'The server is busy, try again later', {
          retryAfter: this.#retryAfter(),
        });
      }
      await this.#turn(signal);
    } else {
      this.#running++;
    }
    const started = performance.now();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#leave((performance.now() - started) / 1000);
    };
  }

  /** Resolves when no task is running or waiting. */
  async whenIdle(): Promise<void> {
    if (this.#running === 0 && this.#waiting.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** A place among the running, handed over by the task that ends. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        start: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
        refuse: reject,
      };
      const onAbort = () => {
        this.#waiting.delete(waiter);
        waiter.refuse(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiter);
    });
  }

  #leave(seconds: number): void {
    this.#meanSeconds = 0.9 * this.#meanSeconds + 0.1 * seconds;
    const [next] = this.#waiting;
    if (next !== undefined) {
      this.#waiting.delete(next);
      next.start();
      return;
    }
    this.#running--;
    if (this.#running > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Seconds until the work that is there now is likely to be done. */
  #retryAfter(): number {
    const turns = (this.#waiting.size + this.#running) / this.#options.concurrency;
    return Math.min(longestRetry, Math.max(1, Math.ceil(turns * this.#meanSeconds)));
  }
}
