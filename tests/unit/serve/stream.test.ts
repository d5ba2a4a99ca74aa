/** Translations as they are decoded, and with details. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { gate, german, serving, upperCase } from './serving.js';

/** The events of a body: name and data; without comments. */
function eventsOf(text: string): (readonly [string, unknown])[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '' && !event.startsWith(':'))
    .map((event) => {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
      return [name as string, JSON.parse(data as string)] as const;
    });
}

describe('POST /translate/stream', () => {
  it('sends pieces as server-sent events, then the whole', async () => {
    const { post } = await serving();
    const { headers, text } = await post('/translate/stream', german('ein Haus\nzwei'));
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(eventsOf(text)).toEqual([
      ['piece', { text: 'EIN ' }],
      ['piece', { text: 'HAUS' }],
      ['piece', { text: '\n' }],
      ['piece', { text: 'ZWEI' }],
      ['done', { translatedText: 'EIN HAUS\nZWEI' }],
    ]);
  });

  it('sends each piece before the next one is decoded', async () => {
    const gates = [gate(), gate()];
    let next = 0;
    const load = () => Promise.resolve(upperCase({ gate: () => gates[next++]!.opened }));
    const { address } = await serving({ load });
    const response = await fetch(`${address}/translate/stream`, {
      method: 'POST',
      body: JSON.stringify(german('ein Haus')),
      headers: { 'content-type': 'application/json' },
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe(': decoding\n\n');
    gates[0]!.open();
    expect((await reader.read()).value).toContain('"EIN "');
    gates[1]!.open();
    expect((await reader.read()).value).toContain('"HAUS"');
  });

  it('reports an error in the middle as an event', async () => {
    const double = upperCase();
    const load = () =>
      Promise.resolve({
        ...double,
        async *stream() {
          yield 'EIN ';
          throw new Error('secret');
        },
      });
    const { post, log } = await serving({ load });
    const { status, text } = await post('/translate/stream', german('ein Haus'));
    expect(status).toBe(200);
    expect(eventsOf(text)).toEqual([
      ['piece', { text: 'EIN ' }],
      ['error', { error: 'Cannot translate text' }],
    ]);
    expect(log).toEqual(['Cannot translate text: secret']);
  });

  it('reports an error before the first piece as a response', async () => {
    const { post } = await serving({ load: () => Promise.reject(new Error('broken')) });
    expect((await post('/translate/stream', german('a'))).status).toBe(503);
    const other = await serving();
    expect((await other.post('/translate/stream', german(['a', 'b']))).json).toEqual({
      error: 'Invalid request: this route takes one q parameter of format text',
    });
  });

  it('stops decoding when the client leaves', async () => {
    let stopped = false;
    const double = upperCase();
    const load = () =>
      Promise.resolve({
        ...double,
        async *stream(_text: string, { signal }: { signal: AbortSignal }) {
          try {
            while (!signal.aborted) {
              yield 'wort ';
              await sleep(5);
            }
          } finally {
            stopped = true;
          }
        },
      });
    const { address, post } = await serving({ load, concurrency: 1, queueLimit: 1 });
    const controller = new AbortController();
    const response = await fetch(`${address}/translate/stream`, {
      method: 'POST',
      body: JSON.stringify(german('a')),
      headers: { 'content-type': 'application/json' },
      signal: controller.signal,
    });
    await response.body!.getReader().read();
    controller.abort();
    // Its place is free again.
    expect((await post('/translate', german('b'))).status).toBe(200);
    expect(stopped).toBe(true);
  });
});

describe('POST /translate/detailed', () => {
  it('has hypotheses, scores and attention for each line', async () => {
    const { post } = await serving();
    const { json } = await post(
      '/translate/detailed',
      german('ein Haus\nzwei', { alternatives: 1 }),
    );
    expect(json).toEqual({
      translatedText: 'EIN HAUS\nZWEI',
      alternatives: ['ein haus 1\nzwei 1'],
      segments: [
        {
          source: 'ein Haus',
          hypotheses: [
            {
              text: 'EIN HAUS',
              score: 0,
              tokens: [
                { text: 'EIN', score: -0.5 },
                { text: 'HAUS', score: -0.5 },
              ],
            },
            {
              text: 'ein haus 1',
              score: -1,
              tokens: [
                { text: 'EIN', score: -0.5 },
                { text: 'HAUS', score: -0.5 },
              ],
            },
          ],
          attention: {
            sourceTokens: ['ein', 'Haus'],
            targetTokens: ['EIN', 'HAUS'],
            weights: [
              [1, 0],
              [0, 1],
            ],
            sourceWords: [
              { text: 'ein', tokens: [0] },
              { text: 'Haus', tokens: [1] },
            ],
            targetWords: [
              { text: 'EIN', tokens: [0] },
              { text: 'HAUS', tokens: [1] },
            ],
          },
        },
        expect.objectContaining({ source: 'zwei' }),
      ],
    });
  });
});
