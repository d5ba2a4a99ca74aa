import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadModel, Translator } from 'torchformer';
import { exampleFolder, runExample } from '../support/runExample.js';

let folder: string;
let printed: string;
beforeAll(() => {
  folder = exampleFolder();
  const { status, output, errors } = runExample(folder, 'finetune', join(folder, 'out'));
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
