/** LibreTranslate's API: what its clients send, and what they expect back. */
import { describe, expect, it } from 'vitest';
import { german, serving } from './serving.js';

describe('POST /translate', () => {
  it('translates a text', async () => {
    const { post } = await serving();
    const { status, json, headers } = await post('/translate', german('ein Haus'));
    expect({ status, json }).toEqual({ status: 200, json: { translatedText: 'EIN HAUS' } });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it('translates several texts in order', async () => {
    const { post } = await serving();
    const { json } = await post('/translate', german(['ein Haus', '', 'zwei']));
    expect(json).toEqual({ translatedText: ['EIN HAUS', '', 'ZWEI'] });
  });

  it('keeps line ends, blank lines and indents, and translates each line by itself', async () => {
    const { post } = await serving();
    const { json } = await post('/translate', german('ein\r\n\r\n  zwei \n'));
    expect(json).toEqual({ translatedText: 'EIN\r\n\r\n  ZWEI \n' });
  });

  it('adds alternatives when asked for', async () => {
    const { post } = await serving();
    expect((await post('/translate', german('Haus', { alternatives: 2 }))).json).toEqual({
      translatedText: 'HAUS',
      alternatives: ['haus 1', 'haus 2'],
    });
    expect((await post('/translate', german(['Haus', 'Tür'], { alternatives: '1' }))).json).toEqual(
      {
        translatedText: ['HAUS', 'TÜR'],
        alternatives: [['haus 1'], ['tür 1']],
      },
    );
  });

  it('tells the detected language when the source is auto', async () => {
    const { post } = await serving({ models: { 'de-en': 'a', 'zh-en': 'b' } });
    const question = { q: '你好', source: 'auto', target: 'en' };
    expect((await post('/translate', question)).json).toEqual({
      translatedText: '你好',
      detectedLanguage: { language: 'zh', confidence: 100 },
    });
    expect((await post('/translate', { ...question, q: ['guten Tag', 'ja'] })).json).toEqual({
      translatedText: ['GUTEN TAG', 'JA'],
      detectedLanguage: [
        { language: 'de', confidence: 100 },
        { language: 'de', confidence: 100 },
      ],
    });
  });

  it('asks for the source where languages of one script cannot be told apart', async () => {
    const { post } = await serving({ models: { 'de-en': 'a', 'fr-en': 'b' } });
    const { status, json } = await post('/translate', { q: 'Haus', source: 'auto', target: 'en' });
    expect({ status, json }).toEqual({
      status: 400,
      json: { error: 'The source language cannot be detected, name one of de, fr' },
    });
  });

  it('takes a form, with many texts as many fields', async () => {
    const { post } = await serving();
    const form = new URLSearchParams({ q: 'ein\r\nHaus', source: 'de', target: 'en' });
    expect((await post('/translate', form)).json).toEqual({ translatedText: 'EIN\nHAUS' });
    form.append('q', 'zwei');
    expect((await post('/translate', form)).json).toEqual({
      translatedText: ['EIN\nHAUS', 'ZWEI'],
    });
  });

  it('takes a multipart form', async () => {
    const { post } = await serving();
    const form = new FormData();
    for (const [name, value] of Object.entries(german('ein Haus'))) form.set(name, String(value));
    expect((await post('/translate', form)).json).toEqual({ translatedText: 'EIN HAUS' });
    form.set('q', new Blob(['x']), 'x.txt');
    expect((await post('/translate', form)).json).toEqual({
      error: 'The field q is a file, not a text',
    });
  });

  it('finds languages by other spellings of their codes', async () => {
    const { post } = await serving({ models: { 'de-en': 'a', 'pt_BR-zh_Hans': 'b' } });
    for (const [source, target] of [
      ['DE', 'en-US'],
      ['pt-br', 'zh-Hans'],
      ['pt_BR', 'zh'],
      ['pt', 'ZH-HANS'],
    ]) {
      const { json } = await post('/translate', { q: 'a', source, target });
      expect({ source, target, json }).toEqual({ source, target, json: { translatedText: 'A' } });
    }
  });

  it.each([
    ['no q', { source: 'de', target: 'en' }, 'Invalid request: missing q parameter'],
    ['an empty q', german(''), 'Invalid request: missing q parameter'],
    ['no texts', german([]), 'Invalid request: missing q parameter'],
    ['a number for a text', german(7), 'Invalid request: q parameter is not a text'],
    ['null among the texts', german(['a', null]), 'Invalid request: q[1] parameter is not a text'],
    ['no source', { q: 'a', target: 'en' }, 'Invalid request: missing source parameter'],
    ['no target', { q: 'a', source: 'de' }, 'Invalid request: missing target parameter'],
    [
      'an object for a language',
      { ...german('a'), source: {} },
      'Invalid request: source parameter is not a text',
    ],
    ['an unknown source', { ...german('a'), source: 'xx' }, 'xx is not supported'],
    ['an unknown target', { ...german('a'), target: 'fr' }, 'fr is not supported'],
    ['an unknown format', german('a', { format: 'pdf' }), 'pdf format is not supported'],
    [
      'alternatives that are no number',
      german('a', { alternatives: 'many' }),
      'Invalid request: alternatives parameter is not a number',
    ],
    [
      'too many alternatives',
      german('a', { alternatives: 11 }),
      'Invalid request: alternatives parameter must be <= 10',
    ],
  ])('answers %s with status 400 and the reason', async (_, question, error) => {
    const { post } = await serving();
    const { status, json } = await post('/translate', question);
    expect({ status, json }).toEqual({ status: 400, json: { error } });
  });

  it('names both languages where there is no model for the pair', async () => {
    const { post } = await serving({ models: { 'de-en': 'a', 'en-fr': 'b' } });
    const { status, json } = await post('/translate', { q: 'a', source: 'de', target: 'fr' });
    expect({ status, json }).toEqual({
      status: 400,
      json: { error: 'French (fr) is not available as a target language from German (de)' },
    });
  });
});

describe('the other routes', () => {
  it('GET /languages names each language with its targets', async () => {
    const { get } = await serving({ models: { 'de-en': 'a', 'en-zh': 'b', 'de-zh': 'c' } });
    expect((await get('/languages')).json).toEqual([
      { code: 'de', name: 'German', targets: ['en', 'zh'] },
      { code: 'en', name: 'English', targets: ['zh'] },
      { code: 'zh', name: 'Chinese', targets: [] },
    ]);
  });

  it('GET /health says ok', async () => {
    const { get } = await serving();
    expect((await get('/health')).json).toEqual({ status: 'ok' });
  });

  it('GET /frontend/settings says what there is', async () => {
    const { get } = await serving({ charLimit: 500 });
    expect((await get('/frontend/settings')).json).toEqual({
      charLimit: 500,
      frontendTimeout: 500,
      apiKeys: false,
      keyRequired: false,
      suggestions: false,
      filesTranslation: false,
      supportedFilesFormat: [],
      language: {
        source: { code: 'de', name: 'German' },
        target: { code: 'en', name: 'English' },
      },
    });
  });

  it('POST /detect lists the languages whose script the text has', async () => {
    const models = { 'de-zh': 'a', 'ru-zh': 'b', 'ja-zh': 'c', 'zh-de': 'd', 'ko-zh': 'e' };
    const { post } = await serving({ models });
    const detect = async (q: string) => (await post('/detect', { q })).json;
    expect(await detect('guten Tag')).toEqual([{ language: 'de', confidence: 100 }]);
    expect(await detect('привет')).toEqual([{ language: 'ru', confidence: 100 }]);
    expect(await detect('안녕')).toEqual([{ language: 'ko', confidence: 100 }]);
    // Kana make it Japanese, although most of its characters may be Chinese too.
    expect(await detect('東京へ行く')).toEqual([{ language: 'ja', confidence: 100 }]);
    expect(await detect('你好')).toEqual([{ language: 'zh', confidence: 100 }]);
    expect(await detect('abc где')).toEqual([
      { language: 'de', confidence: 50 },
      { language: 'ru', confidence: 50 },
    ]);
    expect(await detect('123')).toEqual([]);
  });

  it('LibreTranslate routes that do not exist here say so in its words', async () => {
    const { post } = await serving();
    for (const [path, error] of [
      ['/suggest', 'Suggestions are disabled on this server.'],
      ['/translate_file', 'Files translation are disabled on this server.'],
    ] as const) {
      const { status, json } = await post(path, {});
      expect({ status, json }).toEqual({ status: 403, json: { error } });
    }
  });

  it('an unknown path is 404, another method 405', async () => {
    const { get } = await serving();
    expect(await get('/nothing')).toMatchObject({ status: 404, json: { error: 'Not found' } });
    expect(await get('/translate?q=a')).toMatchObject({
      status: 405,
      json: { error: 'GET is not allowed, use POST' },
    });
  });
});

describe('API keys', () => {
  const apiKeys = ['first', 'second'];

  it('are taken from the body, the form or the header', async () => {
    const { post } = await serving({ apiKeys });
    const accepted = { status: 200, json: { translatedText: 'A' } };
    expect(await post('/translate', german('a', { api_key: 'first' }))).toMatchObject(accepted);
    const form = new URLSearchParams({ q: 'a', source: 'de', target: 'en', api_key: 'second' });
    expect(await post('/translate', form)).toMatchObject(accepted);
    const headers = { authorization: 'Bearer first' };
    expect(await post('/translate', german('a'), headers)).toMatchObject(accepted);
  });

  it('are refused with 403 if wrong, and asked for with 400 if missing', async () => {
    const { post } = await serving({ apiKeys });
    for (const path of ['/translate', '/translate/stream', '/translate/detailed', '/detect']) {
      expect(await post(path, german('a', { api_key: 'third' }))).toMatchObject({
        status: 403,
        json: { error: 'Invalid API key' },
      });
      expect(await post(path, german('a', { api_key: '' }))).toMatchObject({
        status: 400,
        json: { error: 'Please contact the server operator to get an API key' },
      });
      expect((await post(path, german('a', { api_key: ['first'] }))).status).toBe(403);
    }
  });

  it('are not needed to see what the server has', async () => {
    const { get } = await serving({ apiKeys });
    expect((await get('/languages')).status).toBe(200);
    expect((await get('/frontend/settings')).json).toMatchObject({
      apiKeys: true,
      keyRequired: true,
    });
  });
});

describe('pages of other origins', () => {
  it('may not call the server, unless an origin is given', async () => {
    const closed = await serving();
    expect((await closed.get('/languages')).headers.get('access-control-allow-origin')).toBe(null);
    const open = await serving({ cors: '*' });
    expect((await open.get('/languages')).headers.get('access-control-allow-origin')).toBe('*');
    const preflight = await fetch(`${open.address}/translate`, { method: 'OPTIONS' });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Content-Type');
    expect((await open.post('/translate', '{')).headers.get('access-control-allow-origin')).toBe(
      '*',
    );
  });
});
