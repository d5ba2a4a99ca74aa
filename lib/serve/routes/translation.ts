/** The routes that translate: whole texts, with details, and as a stream. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { chooseModel, type ChosenModel } from '../chooseModel.js';
import { errorResponse } from '../errorResponse.js';
import { openJob, withJob, type Job } from '../job.js';
import { RequestError } from '../requestError.js';
import { queryFields, type Fields } from '../requestFields.js';
import type { ServerContext } from '../serverContext.js';
import { parseTranslateRequest, type TranslateRequest } from '../translateRequest.js';
import {
  streamText,
  translateDetailed,
  translateHtml,
  translateTexts,
  type DetailedText,
} from '../translateTexts.js';

export function addTranslationRoutes(server: FastifyInstance, context: ServerContext): void {
  server.post('/translate', (request, reply) => translate(context, request, reply));
  server.post('/translate/detailed', (request, reply) => detailed(context, request, reply));
  server.post('/translate/stream', (request, reply) => stream(context, request, reply));
}

interface Prepared {
  readonly asked: TranslateRequest;
  readonly chosen: ChosenModel;
}

/** Checks key and parameters, and finds the model. */
async function prepare(context: ServerContext, request: FastifyRequest): Promise<Prepared> {
  const fields = fieldsOf(request);
  checkKey(context, request, fields);
  const asked = parseTranslateRequest(fields, context.settings);
  const chosen = chooseModel(await context.listModels(), asked);
  return { asked, chosen };
}

/** The parameters; those of a form may also be in the address. */
export function fieldsOf(request: FastifyRequest): Fields {
  const isJson = /^application\/([\w.+-]+\+)?json\b/i.test(request.headers['content-type'] ?? '');
  const body = (request.body ?? {}) as Fields;
  return isJson ? body : { ...queryFields(request.raw.url ?? ''), ...body };
}

/** @throws RequestError if a key is needed: `api_key`, or the header `Authorization: Bearer <key>` */
export function checkKey(context: ServerContext, request: FastifyRequest, fields: Fields): void {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  context.keys.check(fields['api_key'] ?? bearer);
}

function count(context: ServerContext, { asked, chosen }: Prepared): void {
  const { pair } = chosen.model;
  const characters = asked.texts.reduce((sum, text) => sum + text.length, 0);
  context.metrics.texts.add({ pair }, asked.texts.length);
  context.metrics.characters.add({ pair }, characters);
}

/** LibreTranslate's `/translate`. */
async function translate(
  context: ServerContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Fields> {
  const prepared = await prepare(context, request);
  const { asked, chosen } = prepared;
  const outputs = await withJob(context, reply.raw, chosen.model.pair, (job) => run(asked, job));
  count(context, prepared);
  const first = <T>(values: readonly T[]) => (asked.isBatch ? values : values[0]);
  return {
    translatedText: first(outputs.map(([best]) => best)),
    ...(asked.source === 'auto'
      ? { detectedLanguage: first(outputs.map(() => chosen.detected)) }
      : {}),
    ...(asked.alternatives > 0
      ? { alternatives: first(outputs.map(([, ...others]) => others)) }
      : {}),
  };
}

/** For each text, its translation, then the alternatives; HTML has none. */
async function run(
  { texts, format, alternatives }: TranslateRequest,
  { translator, signal }: Job,
): Promise<readonly (readonly string[])[]> {
  if (format === 'html') {
    return (await translateHtml(texts, translator, { signal })).map((text) => [text]);
  }
  if (alternatives === 0) {
    return (await translateTexts(texts, translator, { signal })).map((text) => [text]);
  }
  const options = { hypotheses: alternatives + 1, attention: false, signal };
  return (await translateDetailed(texts, translator, options)).map((detail) => detail.texts);
}

/** One text with hypotheses, scores and attention for each of its lines. */
async function detailed(
  context: ServerContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Fields> {
  const prepared = await prepare(context, request);
  const { asked, chosen } = prepared;
  const text = onePlainText(asked);
  const options = { hypotheses: asked.alternatives + 1, attention: true };
  const [result] = await withJob(context, reply.raw, chosen.model.pair, ({ translator, signal }) =>
    translateDetailed([text], translator, { ...options, signal }),
  );
  count(context, prepared);
  const { texts, segments } = result as DetailedText;
  const [translatedText, ...alternatives] = texts;
  return {
    translatedText,
    ...(asked.source === 'auto' ? { detectedLanguage: chosen.detected } : {}),
    alternatives,
    segments,
  };
}

function onePlainText({ texts, isBatch, format }: TranslateRequest): string {
  const [text] = texts;
  if (!isBatch && format === 'text') return text as string;
  throw new RequestError(400, 'Invalid request: this route takes one q parameter of format text');
}

/**
 * Server-sent events: `piece` with `{"text"}` for each piece, then `done` with `{"translatedText"}`, or
 * `error` with `{"error"}`.
 */
async function stream(
  context: ServerContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const prepared = await prepare(context, request);
  const { asked, chosen } = prepared;
  const text = onePlainText(asked);
  const job = await openJob(context, reply.raw, chosen.model.pair);
  const events = Readable.from(
    eventsOf(text, job, context, () => count(context, prepared)),
    {
      objectMode: false,
    },
  );
  // Also if the client leaves before the first piece is read.
  events.once('close', () => job.close());
  return reply
    .headers({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    .send(events);
}

async function* eventsOf(
  text: string,
  { translator, signal, close }: Job,
  context: ServerContext,
  onDone: () => void,
): AsyncGenerator<string> {
  let translatedText = '';
  try {
    // A comment, so that the client gets the headers before the first word is decoded.
    yield ': decoding\n\n';
    for await (const piece of streamText(text, translator, { signal })) {
      signal.throwIfAborted();
      translatedText += piece;
      yield event('piece', { text: piece });
    }
    onDone();
    yield event('done', { translatedText });
  } catch (error) {
    const { body } = errorResponse(signal.aborted ? signal.reason : error, context.settings.log);
    yield event('error', body);
  } finally {
    close();
  }
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
