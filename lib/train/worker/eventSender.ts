/** The listener in the worker: what it is told, the caller's listener hears. */
import type { MessagePort } from 'node:worker_threads';
import { eventNames, type TrainingEvents, type TrainingListener } from '../run/events.js';
import { received, transferable, type TransferredError } from './errorTransfer.js';
import type { FromWorker } from './messages.js';

/** Events between steps, whose listeners training does not wait for. */
const unawaited: ReadonlySet<keyof TrainingEvents> = new Set([
  'step',
  'validationBatch',
  'message',
]);

/** Sends the events of a worker. */
export class EventSender {
  /** Has a method for every event. */
  readonly listener: Required<TrainingListener>;
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, { done: () => void; fail: (error: Error) => void }>();
  #sent = 0;
  /** What the caller's listener threw. */
  #fault: Error | null = null;

  /** @param handled the other events are not sent */
  constructor(port: MessagePort, handled: readonly (keyof TrainingEvents)[]) {
    this.#port = port;
    const methods = eventNames.map((name) => [
      name,
      (event: unknown) => (handled.includes(name) ? this.#send(name, event) : undefined),
    ]);
    this.listener = Object.fromEntries(methods) as Required<TrainingListener>;
  }

  /** The caller's listener has handled an event that the worker waits for. */
  handled(id: number): void {
    this.#waiting.get(id)?.done();
    this.#waiting.delete(id);
  }

  /** The caller's listener threw. */
  failed(error: TransferredError): void {
    this.#fault = received(error);
    for (const { fail } of this.#waiting.values()) fail(this.#fault);
    this.#waiting.clear();
  }

  #send(name: keyof TrainingEvents, event: unknown): void | Promise<void> {
    if (this.#fault !== null) throw this.#fault;
    const id = unawaited.has(name) ? null : ++this.#sent;
    const message: FromWorker = { kind: 'event', name, event: withoutErrors(event), id };
    this.#port.postMessage(message);
    if (id === null) return;
    return new Promise<void>((done, fail) => this.#waiting.set(id, { done, fail }));
  }
}

/** The error of an `end` event, as a plain value. */
function withoutErrors(event: unknown): unknown {
  if (typeof event !== 'object' || event === null || !('error' in event)) return event;
  return { ...event, error: transferable(event.error) };
}
