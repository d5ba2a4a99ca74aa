import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadModel, noGrad, saveModel, Tokenizer, trainCharacters, Translator } from 'torchformer';
import { tinyModel } from '../support/tinyTranslation.js';

const command = fileURLToPath(new URL('../../bin/torchformer.js', import.meta.url));

function average(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, 'average', ...args], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

let root: string;
let run: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-average-command-'));
  run = join(root, 'run');
  const tokenizer = Tokenizer.fromJson(await trainCharacters(['one two']));
  const specialIds = { pad: 0, bos: 1, eos: 2 };
  for (const [index, validationLoss] of [3, 1, 2].entries()) {
    const model = tinyModel(tokenizer.vocabSize);
    const step = index + 1;
    noGrad(() => void model.generator.proj.bias?.fill_(step));
    await saveModel(join(run, 'checkpoints', `step-0000000${step}`), model, {
      tokenizer,
      specialIds,
      columns: { source: 'en', target: 'de' },
      training: { step, validationLoss },
    });
  }
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const checkpoint = (step: number) => join(run, 'checkpoints', `step-0000000${step}`);

async function biasOf(folder: string): Promise<number> {
  const { model } = await loadModel(folder);
  return model.generator.proj.bias?.mean().item() ?? NaN;
}

test('averages folders into a model that translates', async () => {
  const out = join(root, 'mean');
  const { status, stdout, stderr } = average('--out', out, checkpoint(1), checkpoint(2));
  expect([status, stdout]).toEqual([0, '']);
  expect(stderr).toBe(`  ${checkpoint(1)}\n  ${checkpoint(2)}\naveraged 2 models into ${out}\n`);
  expect(await biasOf(out)).toBe(1.5);
  const { config } = await loadModel(out);
  expect(config.columns).toEqual({ source: 'en', target: 'de' });
  expect(config.training).toEqual({ averaged: [checkpoint(1), checkpoint(2)] });
  const translator = await Translator.load(out);
  expect(await translator.translate(['one'])).toHaveLength(1);
});

test('averages the last, or the best, of a run', async () => {
  expect(average('--last', '2', run, '--out', join(root, 'last')).status).toBe(0);
  expect(await biasOf(join(root, 'last'))).toBe(2.5);
  expect(average('--best', '1', '--by', 'loss', run, '--out', join(root, 'best')).status).toBe(0);
  expect(await biasOf(join(root, 'best'))).toBe(2);
});

test.each<[string, () => string[], string]>([
  ['a model is not overwritten', () => ['--out', checkpoint(3), checkpoint(1)], 'use --overwrite'],
  ['too few', () => ['--out', join(root, 'x'), '--last', '9', run], 'it keeps only 3 models'],
  ['two runs', () => ['--out', join(root, 'x'), '--last', '1', run, run], 'the folder of one run'],
  [
    'by without best',
    () => ['--out', join(root, 'x'), '--by', 'loss', run],
    '--by requires --best',
  ],
  ['no out', () => [checkpoint(1)], "required option '--out <folder>' not specified"],
  ['no folder', () => ['--out', join(root, 'x')], "missing required argument 'folders'"],
])('%s', (_, args, message) => {
  const { status, stdout, stderr } = average(...args());
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toContain(message);
});
