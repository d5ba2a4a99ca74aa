import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { loadModel } from 'torchformer';
import { fiftyPairs } from '../support/tinyTranslation.js';

const command = fileURLToPath(new URL('../../bin/torchformer.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'torchformer-saving-'));
const pairs = join(folder, 'pairs.csv');
writeFileSync(pairs, `src,tgt\n${fiftyPairs.map(({ src, tgt }) => `${src},${tgt}`).join('\n')}\n`);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const trainArgs = (out: string, epochs: number) => [
  ...[command, 'train', '--train', pairs, '--src', 'src', '--tgt', 'tgt', '--out', out],
  ...['--layers', '1', '--d-model', '64', '--d-ff', '64', '--heads', '2', '--vocab-size', '300'],
  ...['--threads', '1', '--epochs', String(epochs)],
];

test('a limit on the size of files is named before the first step', () => {
  const out = join(folder, 'limited');
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['-c', 'ulimit -f 100; exec "$@"', 'bash', process.execPath, ...trainArgs(out, 1)],
    { encoding: 'utf8' },
  );
  expect(stderr).toMatch(
    /model\.safetensors will take \d+ kB, but files of this process are limited to 103 kB \(ulimit -f\)/,
  );
  expect(stderr).not.toContain('epoch 1/');
  expect([status, stdout]).toEqual([1, '']);
  expect(existsSync(join(out, 'last'))).toBe(false);
});

test('a model that its folder does not take at the end is saved elsewhere', async () => {
  const out = join(folder, 'blocked');
  const child = spawn(process.execPath, trainArgs(out, 100_000), {
    env: { ...process.env, TMPDIR: folder },
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += String(chunk);
    if (!stderr.includes('epoch 2/') || child.killed) return;
    // A save that is being written may still take the place of what is put there.
    const thesis = join(out, 'last', 'thesis.txt');
    if (!existsSync(thesis) || existsSync(join(out, 'last', 'config.json'))) {
      rmSync(join(out, 'last'), { recursive: true, force: true });
      mkdirSync(join(out, 'last'));
      writeFileSync(thesis, 'years of work');
    } else if (stderr.includes('contains files but no model')) {
      child.kill('SIGINT');
    }
  });
  const [code] = (await once(child, 'close')) as [number | null];
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /torchformer: .*the state after step \d+ was not saved.*\[ERR_CHECKPOINT\]/,
  );
  const [, saved = ''] = /has been saved in (.*) instead/.exec(stderr) ?? [];
  const { model, config } = await loadModel(saved);
  expect(config.columns).toEqual({ source: 'src', target: 'tgt' });
  model.dispose();
});
