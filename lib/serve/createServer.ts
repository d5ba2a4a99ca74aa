/** The HTTP server. */
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { checkInteger, checkOptions, checkPositive, checkString } from '../runtime/arguments.js';
import { answerClientError } from './connections.js';
import { errorResponse } from './errorResponse.js';
import { RequestError } from './requestError.js';
import { formFields, jsonFields, multipartFields } from './requestFields.js';
import { addInformationRoutes } from './routes/information.js';
import { addPageRoutes } from './routes/page.js';
import { addTranslationRoutes } from './routes/translation.js';
import { ServerContext } from './serverContext.js';
import { checkServeOptions, type ServeOptions } from './serveOptions.js';
import type { CloseOptions, ListenOptions, TranslationServer } from './translationServer.js';

class FastifyServer implements TranslationServer {
  readonly #server: FastifyInstance;
  readonly #context: ServerContext;
  #closed: Promise<void> | null = null;

  constructor(server: FastifyInstance, context: ServerContext) {
    this.#server = server;
    this.#context = context;
  }

  async listen(options: ListenOptions = {}): Promise<string> {
    const owner = 'TranslationServer.listen';
    checkOptions(owner, options, ['host', 'port']);
    const { host = '127.0.0.1', port = 5000 } = options;
    checkString(owner, 'host', host);
    checkInteger(owner, 'port', port, 0, 65_535);
    return this.#server.listen({ host, port });
  }

  async close(options: CloseOptions = {}): Promise<void> {
    const owner = 'TranslationServer.close';
    checkOptions(owner, options, ['gracePeriod']);
    const { gracePeriod = 30 } = options;
    checkPositive(owner, 'gracePeriod', gracePeriod);
    this.#closed ??= this.#close(gracePeriod);
    return this.#closed;
  }

  async #close(gracePeriod: number): Promise<void> {
    const { queue, pool, metrics, ending } = this.#context;
    this.#context.isStopping = true;
    const timer = setTimeout(() => ending.abort(), gracePeriod * 1000);
    try {
      const closing = this.#server.close();
      await queue.whenIdle();
      // A connection that sends no request, or reads no response, has had its time.
      const last = setTimeout(() => this.#server.server.closeAllConnections(), lastResponseTime);
      await closing;
      clearTimeout(last);
    } finally {
      clearTimeout(timer);
      metrics.close();
      await pool.close();
    }
  }
}

/** How long a response may take to be sent after the server has stopped working, in milliseconds. */
const lastResponseTime = 2000;

/** How often connections are looked through for requests that take too long, in milliseconds. */
const checkTime = 1000;

/**
 * Creates a server that speaks LibreTranslate's API; `listen` starts it.
 *
 * ```ts
 * const server = await createServer({ models: 'models' });
 * const address = await server.listen({ port: 5000 });
 * ```
 *
 * @throws TypeError, RangeError naming the option
 */
export async function createServer(options: ServeOptions): Promise<TranslationServer> {
  const settings = checkServeOptions('createServer', options);
  const context = new ServerContext(settings);
  await context.models.check('createServer');
  const requestTimeout = settings.requestTimeout * 1000;
  const server = fastify({
    bodyLimit: settings.bodyLimit,
    requestTimeout,
    // Of a connection without traffic, which a long translation is.
    connectionTimeout: settings.timeLimit * 1000 + requestTimeout,
    http: { headersTimeout: requestTimeout, connectionsCheckingInterval: checkTime },
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, _request, reply) => sendError(error, reply, context),
  });
  server.server.maxConnections = settings.maxConnections;
  addParsers(server);
  addHooks(server, context);
  addTranslationRoutes(server, context);
  addInformationRoutes(server, context);
  if (settings.page) await addPageRoutes(server);
  await server.ready();
  return new FastifyServer(server, context);
}

function addParsers(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  const parse = (
    type: string | RegExp,
    read: (body: Buffer, contentType: string) => unknown,
  ): void => {
    server.addContentTypeParser<Buffer>(
      type,
      { parseAs: 'buffer' },
      (request: FastifyRequest, body: Buffer) =>
        Promise.resolve().then(() => read(body, request.headers['content-type'] ?? '')),
    );
  };
  parse(/^application\/([\w.+-]+\+)?json\b/i, jsonFields);
  parse(/^application\/x-www-form-urlencoded\b/i, formFields);
  parse(/^multipart\/form-data\b/i, multipartFields);
}

function addHooks(server: FastifyInstance, context: ServerContext): void {
  const { cors } = context.settings;
  server.addHook('onRequest', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff');
    if (cors !== null) reply.headers(corsHeaders(cors));
    if (!context.isStopping) return;
    reply.header('connection', 'close');
    throw new RequestError(503, 'The server is stopping', { retryAfter: 10 });
  });
  server.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown';
    const status = String(reply.raw.writableFinished ? reply.statusCode : 499);
    context.metrics.requests.add({ route, status });
    context.metrics.requestSeconds.observe({ route }, reply.elapsedTime / 1000);
  });
  server.setErrorHandler((error, _request, reply) => sendError(error, reply, context));
  server.setNotFoundHandler((request, reply) =>
    sendError(notFound(server, request), reply, context),
  );
  if (cors !== null) server.options('*', (_request, reply) => reply.status(204).send());
}

function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-headers': 'Authorization, Content-Type',
    'access-control-allow-methods': 'GET, POST',
    'access-control-max-age': '86400',
    ...(origin === '*' ? {} : { vary: 'Origin' }),
  };
}

/** Status 405 if the route exists for another method, else 404. */
function notFound(server: FastifyInstance, { method, url }: FastifyRequest): RequestError {
  const [path = '/'] = url.split('?');
  const other = (['GET', 'POST'] as const).find((name) =>
    server.hasRoute({ method: name, url: path }),
  );
  return other === undefined
    ? new RequestError(404, 'Not found')
    : new RequestError(405, `${method} is not allowed, use ${other}`);
}

function sendError(error: unknown, reply: FastifyReply, { settings }: ServerContext): void {
  const { status, body, retryAfter } = errorResponse(error, settings.log);
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter));
  void reply.status(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}
