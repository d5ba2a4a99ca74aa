/** `torchformer serve` as a process: real models, real clients, signals. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { batches, Trainer } from 'torchformer';
import type { ServedAttention, ServedTranslation } from 'torchformer/serve';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { tinyModel, tinyTask } from '../support/tinyTranslation.js';
import { environment, root, runCommand, runScript, temporaryFolder } from './support.js';

let models: string;

/** A model that has learned number words: twenty one → 21. */
beforeAll(async () => {
  models = mkdtempSync(join(tmpdir(), 'torchformer-served-'));
  const { tokenizer, specialIds, dataset } = await tinyTask();
  const model = tinyModel(tokenizer.vocabSize);
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    out: join(models, 'en-de'),
    learningRate: 3e-3,
    reporter: null,
  });
  await trainer.fit((epoch) => batches(dataset, { batchSize: 25, shuffle: true, seed: 1, epoch }), {
    epochs: 60,
  });
  trainer.dispose();
  model.dispose();
  cpSync(join(models, 'en-de'), join(models, 'de-en'), { recursive: true });
});

afterAll(() => rmSync(models, { recursive: true, force: true }));

interface Running {
  readonly address: string;
  readonly child: ChildProcess;
  /** Exit code and signal, when it has ended. */
  readonly ended: Promise<readonly [number | null, string | null]>;
  readonly errors: () => string;
}

/** Starts the command on a free port; ends it with the test. */
async function start(...flags: string[]): Promise<Running> {
  const args = [
    join(root, 'bin/torchformer.js'),
    'serve',
    '--port',
    '0',
    '--threads',
    '1',
    ...flags,
  ];
  const child = spawn(process.execPath, args, { env: environment({}), cwd: root });
  onTestFinished(() => void child.kill('SIGKILL'));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = new Promise<readonly [number | null, string | null]>((resolve) => {
    child.on('exit', (code, signal) => resolve([code, signal]));
  });
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const [, found] = /listening on (\S+)/.exec(text) ?? [];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(`it ended early: ${errors}`)));
  });
  return { address, child, ended, errors: () => errors };
}

interface Answer {
  readonly translatedText?: string | string[];
  readonly error?: string;
}

async function translate(address: string, body: object): Promise<[number, Answer]> {
  const response = await fetch(`${address}/translate`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  });
  return [response.status, (await response.json()) as Answer];
}

describe('torchformer serve', () => {
  it('serves the models of a folder on this machine only, until SIGTERM', async () => {
    const { address, child, ended } = await start('--models', models);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const question = { q: 'twenty one', source: 'en', target: 'de' };
    expect(await translate(address, question)).toEqual([200, { translatedText: '21' }]);
    const texts = ['twenty one', '', 'twenty one\n\ntwenty one'];
    expect(await translate(address, { ...question, q: texts })).toEqual([
      200,
      { translatedText: ['21', '', '21\n\n21'] },
    ]);
    child.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
  });

  it('streams the same text, and details it with scores, alternatives and attention', async () => {
    const { address } = await start('--models', models);
    const post = (path: string, more: object = {}) =>
      fetch(address + path, {
        method: 'POST',
        body: JSON.stringify({ q: 'twenty one', source: 'en', target: 'de', ...more }),
        headers: { 'content-type': 'application/json' },
      });
    const events = await (await post('/translate/stream')).text();
    const pieces = [...events.matchAll(/event: piece\ndata: (.*)/g)].map(
      ([, data]) => (JSON.parse(data as string) as { text: string }).text,
    );
    // A model this small may be done before the first piece is read.
    expect(pieces.join('')).toBe('21');

    const details = (await (await post('/translate/detailed')).json()) as {
      translatedText: string;
      segments: [ServedTranslation];
    };
    expect(details.translatedText).toBe('21');
    const [{ hypotheses, attention }] = details.segments;
    expect(hypotheses).toHaveLength(1);
    expect(hypotheses[0]?.tokens.every(({ score }) => score <= 0)).toBe(true);
    const { sourceTokens, targetTokens, sourceWords, weights } = attention as ServedAttention;
    expect(sourceTokens.join('')).toMatch(/^twenty.one$/);
    expect(sourceWords.map(({ text }) => text)).toEqual(['twenty', 'one']);
    expect(weights).toHaveLength(targetTokens.length);
    for (const row of weights) {
      expect(row).toHaveLength(sourceTokens.length);
      const sum = row.reduce((total, weight) => total + weight, 0);
      expect(sum).toBeGreaterThan(0);
      expect(sum).toBeLessThan(1.00001);
    }

    const { alternatives } = (await (await post('/translate', { alternatives: 2 })).json()) as {
      alternatives: string[];
    };
    expect(alternatives).toHaveLength(2);
  });

  it('translates texts longer than the position table of 32 in parts', async () => {
    const { address } = await start('--model', `en-de=${join(models, 'en-de')}`);
    const q = 'twenty one '.repeat(40).trim();
    const [status, { translatedText }] = await translate(address, {
      q,
      source: 'en',
      target: 'de',
    });
    expect(status).toBe(200);
    expect((translatedText as string).length).toBeGreaterThan(2 * 10);
  });

  it('finishes the requests that run when it is told to stop', async () => {
    const { address, child, ended } = await start('--models', models);
    const q = Array.from({ length: 64 }, () => 'twenty one');
    const running = translate(address, { q, source: 'en', target: 'de' });
    // The model is not loaded yet when the request begins to run.
    for (let text = ''; !/^torchformer_requests_running 1$/m.test(text);) {
      text = await (await fetch(`${address}/metrics`)).text();
    }
    child.kill('SIGINT');
    const [status, { translatedText }] = await running;
    expect(status).toBe(200);
    expect(translatedText).toEqual(q.map(() => '21'));
    expect(await ended).toEqual([130, null]);
  });

  it('keeps serving when a model folder is broken or removed', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'fr-en'));
    writeFileSync(join(folder, 'fr-en/config.json'), '{');
    renameSync(join(models, 'de-en'), join(folder, 'de-en'));
    onTestFinished(() => renameSync(join(folder, 'gone'), join(models, 'de-en')));
    const { address, errors } = await start('--models', folder);
    const question = { q: 'twenty', source: 'fr', target: 'en' };
    expect(await translate(address, question)).toEqual([
      503,
      { error: 'The model fr-en cannot be loaded' },
    ]);
    expect(errors()).toMatch(/^The model fr-en cannot be loaded: .*config\.json/);
    expect((await translate(address, { ...question, source: 'de' }))[0]).toBe(200);
    renameSync(join(folder, 'de-en'), join(folder, 'gone'));
    expect((await translate(address, { ...question, source: 'de' }))[0]).toBe(200);
  });

  it.each([
    ['no models', [], 'either --models or --model is required'],
    ['both', ['--models', 'a', '--model', 'de-en=b'], 'either --models or --model is required'],
    [
      'a model without its pair',
      ['--model', 'runs/a'],
      'a pair and its folder, such as de-en=runs/a',
    ],
    [
      'a folder that does not exist',
      ['--models', '/no/such'],
      'it must be a folder with a model folder',
    ],
    [
      'a missing file of keys',
      ['--model', 'de-en=a', '--api-keys', '/no/such'],
      'the API keys cannot be read',
    ],
  ])('refuses %s with exit code 1', (_, flags, reason) => {
    const { status, output, errors } = runCommand(['serve', ...flags]);
    expect({ status, output }).toEqual({ status: 1, output: '' });
    expect(errors).toContain(reason);
  });

  it('says so when the port is taken', async () => {
    const { address } = await start('--models', models);
    const { port } = new URL(address);
    const { status, errors } = runCommand(['serve', '--models', models, '--port', port]);
    expect(status).toBe(1);
    expect(errors).toContain('[EADDRINUSE]');
  });
});

describe('the import of torchformer', () => {
  it('does not load the HTTP server', () => {
    const script = `
      import module from 'node:module';
      await import('torchformer');
      const loaded = Object.keys(module.createRequire('${root}').cache);
      console.log(loaded.some((file) => /node_modules.(fastify|htmlparser2)/.test(file)));
      await import('torchformer/serve');
      console.log(Object.keys(module.createRequire('${root}').cache).some((file) => /fastify/.test(file)));
    `;
    expect(runScript(script)).toEqual({ status: 0, output: 'false\ntrue\n', errors: '' });
  });
});

/** Whether the Python in the PATH has LibreTranslate's client: `pip install libretranslatepy`. */
const hasPythonClient =
  spawnSync('python3', ['-c', 'import libretranslatepy'], { stdio: 'ignore' }).status === 0;

describe.skipIf(!hasPythonClient)('the Python client libretranslatepy', () => {
  it('translates, lists languages and detects', async () => {
    const { address } = await start('--models', models);
    const program = `
import json
from libretranslatepy import LibreTranslateAPI
api = LibreTranslateAPI(${JSON.stringify(address)})
print(json.dumps([api.translate("twenty one", "en", "de"), api.languages(), api.detect("twenty")]))
`;
    const child = spawn('python3', ['-c', program]);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    await new Promise((resolve) => child.on('exit', resolve));
    expect(JSON.parse(output)).toEqual([
      '21',
      [
        { code: 'de', name: 'German', targets: ['en'] },
        { code: 'en', name: 'English', targets: ['de'] },
      ],
      [
        { language: 'de', confidence: 50 },
        { language: 'en', confidence: 50 },
      ],
    ]);
  });
});
