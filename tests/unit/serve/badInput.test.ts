/** Requests that no proper client sends: each gets an error body, and the server goes on. */
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { german, raw, serving } from './serving.js';

const json = { 'content-type': 'application/json' };

describe('bodies', () => {
  it.each([
    ['JSON cut short', '{"q": "a"', 'Invalid JSON format'],
    ['no JSON', 'q=a', 'Invalid JSON format'],
    ['an empty body', '', 'Invalid JSON format'],
    ['an array', '[]', 'Invalid JSON format: the body must be an object'],
    ['null', 'null', 'Invalid JSON format: the body must be an object'],
    ['a text', '"q"', 'Invalid JSON format: the body must be an object'],
    ['deep nesting', '{"q":'.repeat(50_000), 'Invalid JSON format'],
    [
      'a lone surrogate',
      '{"q":"a\\ud800","source":"de","target":"en"}',
      'Invalid request: q parameter has the lone surrogate U+D800 at character 1',
    ],
    [
      'a control character',
      '{"q":["ok","ab\\u0000"],"source":"de","target":"en"}',
      'Invalid request: q[1] parameter has the control character U+0000 at character 2',
    ],
    ['the prototype as a key', '{"__proto__":{"q":"a"}}', 'Invalid request: missing q parameter'],
  ])('%s: status 400', async (_, body, error) => {
    const { post } = await serving();
    const answer = await post('/translate', body);
    expect({ status: answer.status, json: answer.json }).toEqual({ status: 400, json: { error } });
  });

  it('bytes that are not UTF-8: status 400', async () => {
    const { address } = await serving();
    for (const [type, error] of [
      ['application/json', 'Invalid JSON format: the body is not UTF-8'],
      ['application/x-www-form-urlencoded', 'The form is not UTF-8'],
    ] as const) {
      const body = new Uint8Array([0x71, 0x3d, 0xff, 0xfe]);
      const headers = { 'content-type': type };
      const answer = await fetch(`${address}/translate`, { method: 'POST', body, headers });
      expect([answer.status, await answer.json()]).toEqual([400, { error }]);
    }
  });

  it('a multipart form without its boundary: status 400', async () => {
    const { post } = await serving();
    const headers = { 'content-type': 'multipart/form-data' };
    expect(await post('/translate', 'abc', headers)).toMatchObject({
      status: 400,
      json: { error: 'The form cannot be read' },
    });
  });

  it('another content type: status 415 with those that are taken', async () => {
    const { post } = await serving();
    for (const type of ['text/plain', 'application/xml', 'x', 'a/b/c;;', 'application/jsonx']) {
      const { status, json: body } = await post('/translate', 'abc', { 'content-type': type });
      expect({ type, status, body }).toEqual({
        type,
        status: 415,
        body: { error: expect.stringContaining('must be application/json') },
      });
    }
  });

  it('tabs, form feeds, emoji and unknown scripts are translated', async () => {
    const { post } = await serving();
    for (const text of ['a\tb', 'a\fb', '😀 👩‍👩‍👧', 'ꦲꦏ꧀ꦱꦫꦗꦮ', '\u200b', '\u202eabc']) {
      const { json: body } = await post('/translate', german(text));
      expect(body).toEqual({ translatedText: text.toUpperCase() });
    }
  });
});

describe('connections', () => {
  it('what is not HTTP: status 400', async () => {
    const { port } = await serving();
    const answer = await raw(port, 'hello\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain('{"error":"The request is not HTTP"}');
  });

  it('headers without end: status 431', async () => {
    const { port } = await serving();
    const answer = await raw(port, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toContain('{"error":"The headers are too large"}');
  });

  it('a request that does not arrive in time: status 408', async () => {
    const { port } = await serving({ requestTimeout: 0.2 });
    const headers = 'Host: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{';
    for (const start of ['POST /translate HTT', `POST /translate HTTP/1.1\r\n${headers}`]) {
      const answer = await raw(port, start);
      expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
      expect(answer).toContain('{"error":"The request took too long to arrive"}');
    }
  });

  it('a client that closes its half after the request still gets its answer', async () => {
    const { port } = await serving();
    const body = JSON.stringify(german('ein Haus'));
    const answer = await raw(
      port,
      'POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
        `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      { end: true },
    );
    expect(answer).toContain('{"translatedText":"EIN HAUS"}');
  });

  it('a client that closes in the middle of its request is forgotten', async () => {
    const { port, get, log } = await serving();
    await raw(
      port,
      'POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
      { end: true },
    );
    expect((await get('/health')).status).toBe(200);
    expect(log).toEqual([]);
  });

  it('a thousand idle connections do not keep others from being served', async () => {
    const { port, post } = await serving();
    const sockets = await Promise.all(
      Array.from(
        { length: 1000 },
        () =>
          new Promise<ReturnType<typeof connect>>((resolve, reject) => {
            const socket = connect(port, '127.0.0.1', () => resolve(socket));
            socket.on('error', reject);
          }),
      ),
    );
    expect((await post('/translate', german('a'))).json).toEqual({ translatedText: 'A' });
    for (const socket of sockets) socket.destroy();
  });

  it('more connections than maxConnections are closed', async () => {
    const { port, address } = await serving({ maxConnections: 1 });
    const first = connect(port, '127.0.0.1');
    await new Promise((resolve) => first.once('connect', resolve));
    await expect(fetch(`${address}/health`)).rejects.toThrow();
    first.destroy();
  });

  it('odd addresses: an error body', async () => {
    const { port } = await serving();
    for (const path of ['/%ff', '/%', '/..%2f..%2fetc/passwd', `/${'a'.repeat(5000)}`, '//x']) {
      const answer = await raw(
        port,
        `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      expect(answer, path).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(answer, path).toContain('{"error":');
    }
  });

  it('pipelined requests are answered in order', async () => {
    const { port } = await serving();
    const request = (q: string, more = '') => {
      const body = JSON.stringify(german(q));
      const head = `POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: ${json['content-type']}\r\n`;
      return `${head}Content-Length: ${body.length}\r\n${more}\r\n${body}`;
    };
    const answer = await raw(port, request('a') + request('b', 'Connection: close\r\n'));
    expect(answer.match(/"translatedText":"\w"/g)).toEqual([
      '"translatedText":"A"',
      '"translatedText":"B"',
    ]);
  });
});
