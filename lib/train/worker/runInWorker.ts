/** Training and evaluation in a worker thread. */
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { MessageChannel, Worker, type WorkerOptions } from 'node:worker_threads';
import {
  checkObject,
  checkOptions,
  checkPath,
  checkSignal,
  describe,
} from '../../runtime/arguments.js';
import { TorchError } from '../../runtime/errors.js';
import { checkListener, eventNames, type TrainingListener } from '../run/events.js';
import { received, transferable } from './errorTransfer.js';
import type { FromWorker, ToWorker, WorkerStart } from './messages.js';

/** What the default export of a module for {@link runInWorker} is called with. */
export interface WorkerContext<Input = unknown> {
  /** A copy of the caller's `input`. */
  readonly input: Input;
  /** Aborts when the caller's signal does: pass it to `Trainer.fit` or `evaluate`. */
  readonly signal: AbortSignal;
  /** Passes events to the caller's listener: pass it to the `listeners` of a Trainer. */
  readonly listener: Required<TrainingListener>;
}

/** Options of {@link runInWorker}. */
export interface RunInWorkerOptions<Input = unknown> {
  /** Plain data for the module, which is copied. Default: undefined. */
  input?: Input;
  /** Aborts the `signal` that the module is called with. Default: none. */
  signal?: AbortSignal;
  /** Handles the events that the module's `listener` is told, in their order. Default: none. */
  listener?: TrainingListener;
  /** Options of Node's `Worker`, such as `resourceLimits`. Default: Node's. */
  worker?: Pick<WorkerOptions, 'argv' | 'env' | 'execArgv' | 'name' | 'resourceLimits'>;
}

/** Time for what the module has left running, in milliseconds. */
const graceTime = 1000;

/**
 * Runs a module in a worker thread, so that training or evaluation does not hold up the event loop of a
 * server. The module's default export is called with `{ input, signal, listener }`:
 *
 * ```ts
 * // train.js
 * export default async function ({ input, signal, listener }) {
 *   // … the model and the data are made here …
 *   const trainer = new Trainer(model, { specialIds, reporter: null, listeners: [listener] });
 *   const { best } = await trainer.fit(batches, { epochs: input.epochs, signal });
 *   return best;
 * }
 * // server.js
 * const best = await runInWorker(new URL('./train.js', import.meta.url), {
 *   input: { epochs: 10 },
 *   signal,
 *   listener: { epoch: ({ epoch, trainLoss }) => console.log(epoch, trainLoss) },
 * });
 * ```
 *
 * Input, events and result are copied, so they must be plain data; tensors and models stay in their thread. The
 * worker waits for promises of the listener as a Trainer does, and an error of the listener ends it. When
 * the promise settles, the thread has ended.
 *
 * @param module a file URL or path; paths are relative to the current directory
 * @returns what the module's function returns
 * @throws what the module's function or the listener throws: TorchError with its code, JavaScript's own
 *   classes, otherwise Error with the same name
 * @throws TorchError ERR_WORKER if the thread ends without a result, by `process.exit()` for example;
 *   ERR_OUT_OF_MEMORY if it reaches its limit of JavaScript memory
 * @throws TypeError if an argument is invalid, the input or result cannot be copied, or the module has no
 *   function as default export
 */
export async function runInWorker<Result = unknown, Input = unknown>(
  module: URL | string,
  options: RunInWorkerOptions<Input> = {},
): Promise<Result> {
  const owner = 'runInWorker';
  const url = checkModule(owner, module);
  checkOptions(owner, options, ['input', 'signal', 'listener', 'worker']);
  const { input, listener = {}, worker: workerOptions = {} } = options;
  const signal = checkSignal(owner, 'signal', options.signal);
  if (options.listener !== undefined) checkListener(owner, 'listener', listener);
  checkObject(owner, 'worker', workerOptions, 'an object such as { resourceLimits }');
  const { port1: port, port2 } = new MessageChannel();
  const start: WorkerStart = {
    port: port2,
    module: url,
    input,
    handled: eventNames.filter((name) => listener[name] !== undefined),
    aborted: signal?.aborted === true ? transferable(signal.reason) : null,
  };
  const worker = startWorker(start, { ...workerOptions }, port2);

  let result: { value: unknown } | null = null;
  let fault: { error: unknown } | null = null;
  const send = (message: ToWorker): void => port.postMessage(message);
  const listenerFailed = (error: unknown): void => {
    // The worker's own error is only the answer to this one.
    fault = { error };
    send({ kind: 'failed', error: transferable(error) });
  };
  const handle = async ({ name, event, id }: FromWorker & { kind: 'event' }): Promise<void> => {
    try {
      await (listener[name] as ((event: unknown) => unknown) | undefined)?.call(
        listener,
        withError(event),
      );
      if (id !== null) send({ kind: 'handled', id });
    } catch (error) {
      listenerFailed(error);
    }
  };
  port.on('message', (message: FromWorker) => {
    if (message.kind === 'event') void handle(message);
    else if (message.kind === 'result') result = { value: message.value };
    else fault ??= { error: received(message.error) };
  });
  worker.on('error', (error: NodeJS.ErrnoException) => {
    fault ??= { error: error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? outOfMemory(error) : error };
  });
  const abort = (): void => send({ kind: 'abort', reason: transferable(signal?.reason) });
  signal?.addEventListener('abort', abort);
  try {
    const ended = new Promise<number>((resolve) => worker.on('exit', resolve));
    // After the last message.
    await once(port, 'close');
    const giveUp = new AbortController();
    const late = wait(graceTime, null, { signal: giveUp.signal }).catch(() => null);
    // Timers and servers that the module has left would keep the thread alive.
    if ((await Promise.race([ended, late])) === null) await worker.terminate();
    giveUp.abort();
    const code = await ended;
    if (fault !== null) throw (fault as { error: unknown }).error;
    if (result === null) throw endedEarly(url, code);
    return (result as { value: Result }).value;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

function startWorker(
  workerData: WorkerStart,
  options: NonNullable<RunInWorkerOptions['worker']>,
  port: WorkerStart['port'],
): Worker {
  try {
    const file = new URL('./workerMain.js', import.meta.url);
    const execArgv = options.execArgv ?? inheritedFlags();
    return new Worker(file, { ...options, execArgv, workerData, transferList: [port] });
  } catch (error) {
    port.close();
    if (!(error instanceof Error) || error.name !== 'DataCloneError') throw error;
    throw new TypeError(
      `runInWorker: input must be plain data, which another thread can receive; ${error.message}`,
      { cause: error },
    );
  }
}

/** Node's flags of this process, except those about a program that is given as text. */
function inheritedFlags(): string[] {
  const flags = [...process.execArgv];
  const evaluated = flags.findIndex((flag) => /^(-e|--eval|-p|-pe|--print)$/.test(flag));
  if (evaluated >= 0) flags.splice(evaluated, 2);
  return flags.filter((flag) => !flag.startsWith('--input-type'));
}

function checkModule(owner: string, module: unknown): string {
  if (module instanceof URL) return module.href;
  if (typeof module !== 'string') {
    throw new TypeError(
      `${owner}: module must be a URL such as new URL('./train.js', import.meta.url) or a path, got ` +
        describe(module),
    );
  }
  checkPath(owner, 'module', module);
  if (module.startsWith('file:')) return module;
  return pathToFileURL(path.resolve(module)).href;
}

/** The event as it was: its error is sent as a plain value. */
function withError(event: unknown): unknown {
  if (typeof event !== 'object' || event === null || !('error' in event)) return event;
  return { ...event, error: received(event.error as Parameters<typeof received>[0]) };
}

function outOfMemory(cause: Error): TorchError {
  return new TorchError(
    'ERR_OUT_OF_MEMORY',
    'runInWorker: the worker has reached its limit of JavaScript memory; raise it by worker: { ' +
      'resourceLimits: { maxOldGenerationSizeMb } }, or read the data in parts',
    { cause },
  );
}

function endedEarly(module: string, code: number): TorchError {
  return new TorchError(
    'ERR_WORKER',
    `runInWorker: the worker ended with code ${code} before the function of ${module} returned; does it ` +
      'call process.exit()?',
  );
}
