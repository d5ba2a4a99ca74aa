/** The worker of `runInWorker`: imports the user's module and calls its default export. */
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { received, transferable } from './errorTransfer.js';
import { EventSender } from './eventSender.js';
import type { FromWorker, ToWorker, WorkerStart } from './messages.js';

const { port, module, input, handled, aborted } = workerData as WorkerStart;
const controller = new AbortController();
const sender = new EventSender(port, handled);

function receive(message: ToWorker): void {
  if (message.kind === 'abort') controller.abort(received(message.reason));
  else if (message.kind === 'handled') sender.handled(message.id);
  else sender.failed(message.error);
}

function send(message: FromWorker): void {
  port.postMessage(message);
}

/** @throws TypeError if it is not a function */
async function importTask(): Promise<(context: object) => unknown> {
  const found = (await import(module)) as { default?: unknown };
  // The exports of a CommonJS module that was compiled from an ES module are nested.
  const task = nestedDefault(found.default) ?? found.default;
  if (typeof task === 'function') return task as (context: object) => unknown;
  throw new TypeError(
    `runInWorker: ${module} must have a function as default export: export default async function ` +
      '({ input, signal, listener }) { … }',
  );
}

function nestedDefault(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'default' in value
    ? value.default
    : undefined;
}

if (aborted !== null) controller.abort(received(aborted));
port.on('message', receive);
// An error outside of the task ends the worker: the caller learns its code too.
process.on('uncaughtExceptionMonitor', (error) => {
  send({ kind: 'error', error: transferable(error) });
});
try {
  const task = await importTask();
  const { signal } = controller;
  const value = await task({ input, signal, listener: sender.listener });
  try {
    send({ kind: 'result', value });
  } catch (error) {
    throw new TypeError(
      `runInWorker: the result of ${module} must be plain data, which another thread can receive: ` +
        `numbers, strings, arrays, typed arrays, objects of these; ${(error as Error).message}`,
    );
  }
} catch (error) {
  send({ kind: 'error', error: transferable(error) });
} finally {
  // Messages that come too late would keep the thread alive.
  while (receiveMessageOnPort(port) !== undefined);
  port.close();
}
