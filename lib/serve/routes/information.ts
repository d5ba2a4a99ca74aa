/** The routes that tell about the server: languages, settings, health, detection, metrics. */
import type { FastifyInstance } from 'fastify';
import { detectLanguages, languageName } from '../languages.js';
import type { ListedModel } from '../modelList.js';
import { RequestError } from '../requestError.js';
import type { ServerContext } from '../serverContext.js';
import { parseTexts } from '../translateRequest.js';
import { checkKey, fieldsOf } from './translation.js';

export function addInformationRoutes(server: FastifyInstance, context: ServerContext): void {
  const { settings, keys } = context;

  server.get('/health', () => ({ status: 'ok' }));

  server.get('/languages', async () => languagesOf(await context.listModels()));

  server.get('/frontend/settings', async () => {
    const [first] = await context.listModels();
    const language = (code = '') => ({ code, name: languageName(code) });
    return {
      charLimit: settings.charLimit,
      frontendTimeout: 500,
      apiKeys: keys.required,
      keyRequired: keys.required,
      suggestions: false,
      filesTranslation: false,
      supportedFilesFormat: [],
      language: { source: language(first?.source), target: language(first?.target) },
    };
  });

  server.post('/detect', async (request) => {
    const fields = fieldsOf(request);
    checkKey(context, request, fields);
    const { texts } = parseTexts(fields['q'], settings);
    const sources = (await context.listModels()).map(({ source }) => source);
    return detectLanguages(texts.join('\n'), [...new Set(sources)]);
  });

  server.post('/suggest', () => {
    throw new RequestError(403, 'Suggestions are disabled on this server.');
  });

  server.post('/translate_file', () => {
    throw new RequestError(403, 'Files translation are disabled on this server.');
  });

  if (settings.metrics) {
    server.get('/metrics', (_request, reply) =>
      reply.type('text/plain; version=0.0.4; charset=utf-8').send(context.metrics.text()),
    );
  }
}

/** Every language that is a source or a target, with the targets that it can be translated to. */
function languagesOf(models: readonly ListedModel[]): object[] {
  const codes = new Set(models.flatMap(({ source, target }) => [source, target]));
  return [...codes].sort().map((code) => ({
    code,
    name: languageName(code),
    targets: models.filter(({ source }) => source === code).map(({ target }) => target),
  }));
}
