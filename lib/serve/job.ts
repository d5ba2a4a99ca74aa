/** A request's turn with a model: waiting, the time limit, and the end of the connection. */
import type { ServerResponse } from 'node:http';
import type { ModelLease } from './modelPool.js';
import { RequestError } from './requestError.js';
import type { ServedTranslator } from './servedTranslator.js';
import type { ServerContext } from './serverContext.js';

/** Work of a request on a model. */
export interface Job {
  readonly translator: ServedTranslator;
  /** Aborts when the client has gone, the time is up, or the server ends. */
  readonly signal: AbortSignal;
  /** To be called at the end of the work; further calls do nothing. */
  readonly close: () => void;
}

/**
 * Waits for a turn and for the model.
 *
 * @throws RequestError 503 if too many are waiting, or the model cannot be loaded; 504 if the time is up
 */
export async function openJob(
  context: ServerContext,
  response: ServerResponse,
  pair: string,
): Promise<Job> {
  const { queue, pool, settings, ending } = context;
  const controller = new AbortController();
  const { signal } = controller;
  const onClose = () => {
    if (!response.writableFinished) controller.abort(new RequestError(499, 'The client has gone'));
  };
  const onEnd = () => controller.abort(new RequestError(503, 'The server is stopping'));
  const timer = setTimeout(() => {
    controller.abort(
      new RequestError(504, `The translation took more than ${settings.timeLimit} seconds`),
    );
  }, settings.timeLimit * 1000);
  response.once('close', onClose);
  ending.signal.addEventListener('abort', onEnd, { once: true });
  let leave: (() => void) | undefined;
  let lease: ModelLease | undefined;
  const close = () => {
    clearTimeout(timer);
    response.removeListener('close', onClose);
    ending.signal.removeEventListener('abort', onEnd);
    lease?.release();
    leave?.();
  };
  try {
    if (response.destroyed) onClose();
    if (ending.signal.aborted) onEnd();
    leave = await queue.enter(signal);
    lease = await pool.acquire(pair, signal);
    return { translator: lease.translator, signal, close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Does some work with a model. If its signal aborts, the error is the signal's reason, whatever the
 * model threw.
 */
export async function withJob<T>(
  context: ServerContext,
  response: ServerResponse,
  pair: string,
  work: (job: Job) => Promise<T>,
): Promise<T> {
  const job = await openJob(context, response, pair);
  try {
    return await work(job);
  } catch (error) {
    job.signal.throwIfAborted();
    throw error;
  } finally {
    job.close();
  }
}
