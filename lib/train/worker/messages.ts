/** What the two threads of `runInWorker` say to each other. */
import type { MessagePort } from 'node:worker_threads';
import type { TrainingEvents } from '../run/events.js';
import type { TransferredError } from './errorTransfer.js';

/** The `workerData` of the thread. */
export interface WorkerStart {
  readonly port: MessagePort;
  /** URL of the user's module. */
  readonly module: string;
  readonly input: unknown;
  /** Events that the caller handles. */
  readonly handled: readonly (keyof TrainingEvents)[];
  /** The reason, if the signal is aborted already; null if it is not. */
  readonly aborted: TransferredError | null;
}

/** From the worker. */
export type FromWorker =
  | {
      readonly kind: 'event';
      readonly name: keyof TrainingEvents;
      readonly event: unknown;
      /** Of an event that the worker waits for; null for one that it does not wait for. */
      readonly id: number | null;
    }
  | { readonly kind: 'result'; readonly value: unknown }
  | { readonly kind: 'error'; readonly error: TransferredError };

/** To the worker. */
export type ToWorker =
  | { readonly kind: 'abort'; readonly reason: TransferredError }
  /** The listener has handled an event. */
  | { readonly kind: 'handled'; readonly id: number }
  /** The listener threw: the next event of the worker throws too. */
  | { readonly kind: 'failed'; readonly error: TransferredError };
