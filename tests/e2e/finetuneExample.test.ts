import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadModel, Translator } from 'torchformer';
import { root, runNode } from '../process/support.js';

let folder: string;
let printed: string;
beforeAll(() => {
  // Inside the repository, so that the package's own name resolves.
  mkdirSync(join(root, 'build'), { recursive: true });
  folder = mkdtempSync(join(root, 'build/finetune-'));
  const source = readFileSync(join(root, 'examples/finetune.ts'), 'utf8');
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const script = join(folder, 'finetune.mjs');
  writeFileSync(script, ts.transpileModule(source, { compilerOptions: options }).outputText);
  const { status, output, errors } = runNode([script, join(folder, 'out')]);
  expect([status, errors]).toEqual([0, '']);
  printed = output;
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

test('examples/finetune.ts: each of the three models translates all it was trained on', () => {
  expect(printed.match(/80 of 80 are right/g)).toHaveLength(3);
  expect(printed).toContain('"forty two" → "42"');
  expect(printed).toContain('"forty two euros" → "€42"');
  expect(printed).toContain('"forty two euros" → "42 EUR"');
});

test('the model with new tokens started from the rows of the old ones', () => {
  expect(printed).toContain('4 new: "E", "R", "U", "€"');
});

test('the merged model is an ordinary one, which native code decodes with a beam', async () => {
  const out = join(folder, 'out', 'other-style');
  const { model, config } = await loadModel(out);
  expect(config.ownModules).toEqual([]);
  expect(model.blueprint?.differences(model)).toEqual([]);
  model.dispose();
  const translator = await Translator.load(out);
  expect(await translator.translate(['sixty six euros'], { beam: 4 })).toEqual(['66 EUR']);
  await translator.close();
});
