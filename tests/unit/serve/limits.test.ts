/** What the server refuses when it is too much, and how it stops. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { gate, german, serving, upperCase } from './serving.js';

describe('limits of a request', () => {
  it('the number of texts', async () => {
    const { post } = await serving({ batchLimit: 2 });
    expect((await post('/translate', german(['a', 'b']))).status).toBe(200);
    expect(await post('/translate', german(['a', 'b', 'c']))).toMatchObject({
      status: 400,
      json: { error: 'Invalid request: request (3) exceeds text limit (2)' },
    });
  });

  it('the characters of a text', async () => {
    const { post } = await serving({ charLimit: 5 });
    expect((await post('/translate', german('12345'))).status).toBe(200);
    expect(await post('/translate', german(['1', '123456']))).toMatchObject({
      status: 400,
      json: { error: 'Invalid request: request (6) exceeds text limit (5)' },
    });
  });

  it('the size of the body', async () => {
    const { post } = await serving({ bodyLimit: 100 });
    expect(await post('/translate', german('a'.repeat(100)))).toMatchObject({
      status: 413,
      json: { error: 'The request is too large' },
    });
  });

  it('the time: status 504, and the model is told to stop', async () => {
    let aborted = false;
    const double = upperCase({ gate: () => new Promise(() => undefined) });
    const load = () =>
      Promise.resolve({
        ...double,
        translate: (texts: readonly string[], options: { signal: AbortSignal }) => {
          options.signal.addEventListener('abort', () => (aborted = true));
          return double.translate(texts, options);
        },
      });
    const { post } = await serving({ load, timeLimit: 0.1 });
    expect(await post('/translate', german('a'))).toMatchObject({
      status: 504,
      json: { error: 'The translation took more than 0.1 seconds' },
    });
    expect(aborted).toBe(true);
  });
});

describe('a full queue', () => {
  it('answers 503 with Retry-After at once, and serves those that wait in order', async () => {
    const held = gate();
    const double = upperCase({ gate: () => held.opened });
    const { post } = await serving({
      load: () => Promise.resolve(double),
      concurrency: 1,
      queueLimit: 2,
    });
    const waiting = [];
    for (const text of ['first', 'second', 'third']) {
      waiting.push(post('/translate', german(text)));
      await sleep(30);
    }
    const refused = await post('/translate', german('fourth'));
    expect(refused).toMatchObject({
      status: 503,
      json: { error: 'The server is busy, try again later' },
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    held.open();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(double.calls).toEqual([['first'], ['second'], ['third']]);
  });

  it('forgets a client that leaves, running or waiting', async () => {
    const held = gate();
    const double = upperCase({ gate: () => held.opened });
    const { address, post } = await serving({
      load: () => Promise.resolve(double),
      concurrency: 1,
      queueLimit: 1,
    });
    const controllers = [new AbortController(), new AbortController()];
    const left = controllers.map(async ({ signal }, index) => {
      await sleep(30 * index);
      return fetch(`${address}/translate`, {
        method: 'POST',
        body: JSON.stringify(german(`left ${index}`)),
        headers: { 'content-type': 'application/json' },
        signal,
      }).catch(() => 'left');
    });
    await sleep(100);
    expect((await post('/translate', german('refused'))).status).toBe(503);
    for (const controller of controllers) controller.abort();
    expect(await Promise.all(left)).toEqual(['left', 'left']);
    await sleep(50);
    const stays = post('/translate', german('stays'));
    held.open();
    expect((await stays).status).toBe(200);
    expect(double.calls).toEqual([['left 0'], ['stays']]);
  });

  it('serves 200 clients at the same time', async () => {
    const { post } = await serving({ concurrency: 4, queueLimit: 200 });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => post('/translate', german(`text ${index}`))),
    );
    answers.forEach(({ json }, index) => {
      expect(json).toEqual({ translatedText: `TEXT ${index}` });
    });
  });
});

describe('many requests that run at the same time', () => {
  it('give no warning about their listeners', async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => void warnings.push(message);
    process.on('warning', onWarning);
    const held = gate();
    const double = upperCase({ gate: () => held.opened });
    const { post } = await serving({ load: () => Promise.resolve(double) });
    const running = Array.from({ length: 30 }, () => post('/translate', german('a')));
    while (double.calls.length < 30) await sleep(5);
    held.open();
    await Promise.all(running);
    process.removeListener('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});

describe('close', () => {
  it('finishes what runs and what waits, refuses what is new, and unloads the models', async () => {
    const held = gate();
    const double = upperCase({ gate: () => held.opened });
    const { post, close, get } = await serving({
      load: () => Promise.resolve(double),
      concurrency: 1,
    });
    const running = [post('/translate', german('a')), post('/translate', german('b'))];
    await sleep(50);
    const closed = close();
    await expect(get('/health')).rejects.toThrow();
    expect(double.disposed).toBe(0);
    held.open();
    expect((await Promise.all(running)).map(({ json }) => json)).toEqual([
      { translatedText: 'A' },
      { translatedText: 'B' },
    ]);
    await closed;
    expect(double.disposed).toBe(1);
  });

  it('ends what runs longer than the grace period with status 503', async () => {
    const load = () => Promise.resolve(upperCase({ gate: () => new Promise(() => undefined) }));
    const { post, close } = await serving({ load });
    const running = post('/translate', german('a'));
    await sleep(50);
    await close({ gracePeriod: 0.05 });
    expect(await running).toMatchObject({ status: 503, json: { error: 'The server is stopping' } });
  });
});
