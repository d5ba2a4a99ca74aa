/** Which models are in memory: loaded when asked for, unloaded when there are too many. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from 'torchformer/serve';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../process/support.js';
import { gate, german, serving, upperCase, type Double } from './serving.js';

const pairs = { 'aa-en': 'a', 'bb-en': 'b', 'cc-en': 'c' };
const from = (source: string) => ({ q: 'text', source, target: 'en' });

/** Loads a double for each folder, and notes the order. */
function loader() {
  const loads: string[] = [];
  const doubles: Double[] = [];
  const load = (folder: string) => {
    loads.push(folder.split('/').at(-1) as string);
    const double = upperCase();
    doubles.push(double);
    return Promise.resolve(double);
  };
  return { loads, doubles, load };
}

describe('models', () => {
  it('are loaded when first asked for, once', async () => {
    const { loads, load } = loader();
    const { post, get } = await serving({ models: pairs, load });
    await get('/languages');
    expect(loads).toEqual([]);
    await Promise.all([from('bb'), from('bb'), from('bb')].map((one) => post('/translate', one)));
    expect(loads).toEqual(['b']);
  });

  it('that were used least recently are unloaded when there are more than maxModels', async () => {
    const { loads, doubles, load } = loader();
    const { post } = await serving({ models: pairs, load, maxModels: 2 });
    for (const source of ['aa', 'bb', 'aa', 'cc']) await post('/translate', from(source));
    expect(loads).toEqual(['a', 'b', 'c']);
    expect(doubles.map(({ disposed }) => disposed)).toEqual([0, 1, 0]);
    await post('/translate', from('aa'));
    expect(loads).toEqual(['a', 'b', 'c']);
  });

  it('in use are not unloaded: a request for another waits for them', async () => {
    const held = gate();
    const order: string[] = [];
    const load = (folder: string) => {
      order.push(`load ${folder.split('/').at(-1)}`);
      const double = upperCase({ gate: () => held.opened });
      const dispose = () => void order.push(`unload ${folder.split('/').at(-1)}`);
      return Promise.resolve(Object.assign(double, { dispose }));
    };
    const { post } = await serving({ models: pairs, load, maxModels: 1 });
    const first = post('/translate', from('aa'));
    while (order.length === 0) await sleep(1);
    const second = post('/translate', from('bb'));
    const third = post('/translate', from('aa'));
    await sleep(50);
    expect(order).toEqual(['load a']);
    held.open();
    expect((await Promise.all([first, second, third])).map(({ status }) => status)).toEqual([
      200, 200, 200,
    ]);
    expect(order.slice(0, 3)).toEqual(['load a', 'unload a', 'load b']);
  });

  it('that cannot be loaded are status 503; the reason is logged, and the next request tries again', async () => {
    let works = false;
    const load = () =>
      works
        ? Promise.resolve(upperCase())
        : Promise.reject(new Error('/secret/config.json: broken'));
    const { post, log } = await serving({ load });
    const answer = await post('/translate', german('a'));
    expect(answer).toMatchObject({
      status: 503,
      json: { error: 'The model de-en cannot be loaded' },
    });
    expect(answer.headers.get('retry-after')).toBe('30');
    expect(log).toEqual(['The model de-en cannot be loaded: /secret/config.json: broken']);
    works = true;
    expect((await post('/translate', german('a'))).status).toBe(200);
  });

  it('that fail in a translation are status 500, and the server goes on', async () => {
    let fails = true;
    const double = upperCase();
    const translate: Double['translate'] = (texts, options) =>
      fails ? Promise.reject(new Error('secret')) : double.translate(texts, options);
    const load = () => Promise.resolve({ ...double, translate });
    const { post, log } = await serving({ load });
    expect(await post('/translate', german('a'))).toMatchObject({
      status: 500,
      json: { error: 'Cannot translate text' },
    });
    expect(log).toEqual(['Cannot translate text: secret']);
    fails = false;
    expect((await post('/translate', german('a'))).status).toBe(200);
  });
});

describe('a folder of models', () => {
  function folderWith(...names: string[]): string {
    const folder = temporaryFolder();
    for (const name of names) mkdirSync(join(folder, name));
    return folder;
  }

  it('has a model for each subfolder that is named after a pair', async () => {
    const folder = folderWith('de-en', 'pt_BR-en', 'old', '.git', 'x-y-z');
    writeFileSync(join(folder, 'fr-en'), 'a file');
    const { get } = await serving({ models: folder });
    const { json } = await get('/languages');
    expect((json as { code: string }[]).map(({ code }) => code)).toEqual(['de', 'en', 'pt-BR']);
  });

  it('may gain a model while the server runs', async () => {
    const folder = folderWith();
    const { post } = await serving({ models: folder });
    expect((await post('/translate', german('a'))).json).toEqual({ error: 'en is not supported' });
    mkdirSync(join(folder, 'de-en'));
    await sleep(1100);
    expect((await post('/translate', german('a'))).status).toBe(200);
  });

  it('may lose one: what is in memory keeps serving until it is unloaded, then it is 400 or 503', async () => {
    const folder = folderWith('de-en', 'fr-en');
    const { post } = await serving({ models: folder, maxModels: 1 });
    expect((await post('/translate', german('a'))).status).toBe(200);
    renameSync(join(folder, 'de-en'), join(folder, 'gone'));
    await sleep(1100);
    expect((await post('/translate', german('a'))).status).toBe(200);
    await post('/translate', { q: 'a', source: 'fr', target: 'en' });
    expect(await post('/translate', german('a'))).toMatchObject({
      status: 400,
      json: { error: 'de is not supported' },
    });
  });

  it('that does not exist, or is itself a model, is an error that says what to do', async () => {
    await expect(createServer({ models: '/no/such/folder' })).rejects.toThrow(
      /createServer: models: .*ENOENT.*it must be a folder with a model folder for each pair/,
    );
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'config.json'), '{}');
    await expect(createServer({ models: folder })).rejects.toThrow('is itself a model');
  });
});
