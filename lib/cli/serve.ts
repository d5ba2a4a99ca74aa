/** `torchformer serve` */
import { InvalidArgumentError, type Command } from 'commander';
import type { ServeOptions } from '../serve/index.js';
import { integer, nonEmpty, path, positiveNumber } from './flagValues.js';
import { addRuntimeFlags, applyRuntimeFlags, type RuntimeFlags } from './runtimeFlags.js';
import { withInterrupts } from './signals.js';
import { commandWording } from './wording.js';

interface ServeFlags extends RuntimeFlags {
  models?: string;
  model?: Record<string, string>;
  host: string;
  port: number;
  maxModels: number;
  beam: number;
  apiKeys?: string;
  cors?: string;
  page: boolean;
  metrics: boolean;
  bodyLimit: number;
  batchLimit: number;
  charLimit: number;
  alternativesLimit: number;
  concurrency: number;
  queueLimit: number;
  timeLimit: number;
  requestTimeout: number;
  gracePeriod: number;
}

export function registerServe(program: Command): void {
  const command = program
    .command('serve')
    .description(
      "Serve translations over HTTP: LibreTranslate's API, and a page to try the models.",
    )
    .option(
      '--models <folder>',
      'folder with a model folder (or the folder of a run) for each pair of languages, such as de-en',
      path,
    )
    .option(
      '--model <pair=folder>',
      'the model of one pair, such as de-en=runs/a; may be repeated',
      pairAndFolder,
    )
    .option(
      '--max-models <count>',
      'models in memory; the least recently used are unloaded',
      integer(1),
      8,
    )
    .option('--beam <count>', 'hypotheses that are followed in a search', integer(1), 1)
    .optionsGroup('Network:')
    .option(
      '--host <address>',
      'address to listen on; 0.0.0.0: all networks',
      nonEmpty,
      '127.0.0.1',
    )
    .option('--port <number>', 'port to listen on; 0: any free one', integer(0, 65_535), 5000)
    .option('--cors <origin>', 'origin whose pages may call the server; *: all', nonEmpty)
    .option('--api-keys <file>', 'file with a key in each line; requests need one of them', path)
    .option('--no-page', 'without the page at /')
    .option('--no-metrics', 'without the figures for Prometheus at /metrics')
    .optionsGroup('Limits:')
    .option('--body-limit <bytes>', 'size of a request', integer(1), 1024 * 1024)
    .option('--batch-limit <texts>', 'texts in a request', integer(1), 256)
    .option('--char-limit <count>', 'characters of a text', integer(1), 20_000)
    .option('--alternatives-limit <count>', 'alternatives of a text', integer(0), 10)
    .option('--concurrency <requests>', 'requests translated at the same time', integer(1), 32)
    .option('--queue-limit <requests>', 'requests that wait; more get status 503', integer(0), 256)
    .option(
      '--time-limit <seconds>',
      'time for a translation, waiting included',
      positiveNumber,
      60,
    )
    .option(
      '--request-timeout <seconds>',
      'time for a client to send a request',
      positiveNumber,
      30,
    )
    .option(
      '--grace-period <seconds>',
      'time for running requests to finish after the first Ctrl-C',
      positiveNumber,
      30,
    )
    .optionsGroup('Options:');
  addRuntimeFlags(command).action(async (flags: ServeFlags) => {
    const { models, model } = flags;
    if ((models === undefined) === (model === undefined)) {
      command.error('error: either --models or --model is required');
    }
    await withInterrupts(
      'stopping when running requests are done; a second signal ends immediately',
      (signal) => serve(flags, (models ?? model) as ServeOptions['models'], signal),
    );
  });
}

/** Collects `de-en=folder`. */
function pairAndFolder(text: string, earlier: Record<string, string> = {}): Record<string, string> {
  const [pair = '', ...rest] = text.split('=');
  if (pair === '' || rest.length === 0) {
    throw new InvalidArgumentError('It must be a pair and its folder, such as de-en=runs/a.');
  }
  return { ...earlier, [pair]: path(rest.join('=')) };
}

async function serve(
  flags: ServeFlags,
  models: ServeOptions['models'],
  signal: AbortSignal,
): Promise<void> {
  const device = applyRuntimeFlags('serve', flags);
  const { createServer, readApiKeys } = await importServer();
  const { host, port, gracePeriod, apiKeys, cors, maxModels, beam, page, metrics } = flags;
  const { bodyLimit, batchLimit, charLimit, alternativesLimit } = flags;
  const { concurrency, queueLimit, timeLimit, requestTimeout } = flags;
  const server = await createServer({
    models,
    device,
    maxModels,
    beam,
    apiKeys: apiKeys === undefined ? undefined : await readApiKeys(apiKeys),
    cors,
    page,
    metrics,
    bodyLimit,
    batchLimit,
    charLimit,
    alternativesLimit,
    concurrency,
    queueLimit,
    timeLimit,
    requestTimeout,
    log: (line) => process.stderr.write(`${commandWording(line)}\n`),
  });
  try {
    const address = await server.listen({ host, port });
    process.stdout.write(`listening on ${address}\n`);
    await aborted(signal);
  } finally {
    await server.close({ gracePeriod });
  }
}

/** Only this command needs the HTTP server, which users install themselves. */
async function importServer() {
  try {
    return await import('../serve/index.js');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error('torchformer serve needs the package fastify: npm install fastify@5', {
      cause: error,
    });
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
