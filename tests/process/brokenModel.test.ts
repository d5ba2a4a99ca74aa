/** `torchformer translate` with a model whose weights are no numbers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noGrad, saveModel } from 'torchformer';
import { tinyModel, tinyTask } from '../support/tinyTranslation.js';
import { runCommand } from './support.js';

let root: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-broken-'));
  const { tokenizer, specialIds } = await tinyTask();
  const model = tinyModel(tokenizer.vocabSize);
  noGrad(() => model.generator.proj.bias?.fill_(NaN));
  await saveModel(join(root, 'model'), model, { tokenizer, specialIds });
  model.dispose();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test.each([
  ['texts', ['sixty', 'twenty'], ''],
  ['standard input', [], 'sixty\ntwenty\n'],
])('of %s ends with an error and writes no line', (_, texts, input) => {
  const args = ['translate', '--model', join(root, 'model'), ...texts];
  const { status, output, errors } = runCommand(args, {}, input);
  expect(status).toBe(1);
  expect(output).toBe('');
  expect(errors).toContain('are NaN or infinite; the model\'s "generator.proj.bias" contains NaN');
});
