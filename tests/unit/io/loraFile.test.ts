import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  applyLora,
  Linear,
  loadLora,
  loraStateDict,
  LoraLinear,
  mergeLora,
  noGrad,
  readSafetensors,
  saveLora,
  saveModel,
  writeSafetensors,
  zeros,
} from 'torchformer';
import type { Transformer } from 'torchformer';
import { tinyModel, weightsOf } from '../../support/tinyTranslation.js';

let root: string;
let file: string;
let trained: Transformer;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-lora-'));
  file = join(root, 'adapter.safetensors');
  trained = tinyModel(20);
  applyLora(trained, {
    rank: 2,
    alpha: 6,
    dropout: 0.25,
    targets: ['*.linears.*', 'generator.proj'],
  });
  for (const module of trained.modules()) {
    if (module instanceof LoraLinear) noGrad(() => void module.loraB.weight.uniform_(-1, 1));
  }
  await saveLora(file, trained);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('the file has the updates alone, much smaller than the model', async () => {
  await saveModel(join(root, 'model'), trained);
  const whole = statSync(join(root, 'model', 'model.safetensors')).size;
  expect(statSync(file).size).toBeLessThan(whole / 5);
  const { names } = await readSafetensors(file);
  expect([...names].sort()).toEqual([...loraStateDict(trained).keys()].sort());
});

test('loaded into the model it was trained on, it gives the same weights and settings', async () => {
  const model = tinyModel(20);
  const layers = await loadLora(file, model);
  expect(layers).toContain('generator.proj');
  expect(weightsOf(model)).toEqual(weightsOf(trained));
  const { rank, alpha, dropout, scale } = model.generator.proj as LoraLinear;
  expect([rank, alpha, dropout.p, scale]).toEqual([2, 6, 0.25, 3]);
  expect(model.parameterCount({ trainable: true })).toBe(
    trained.parameterCount({ trainable: true }),
  );
  const copy = trained.clone();
  mergeLora(copy);
  mergeLora(model);
  expect(weightsOf(model)).toEqual(weightsOf(copy));
});

test('is refused for a model without the layers, or with others, which is then unchanged', async () => {
  const [small, wide] = [new Linear(2, 2), tinyModel(20, { dModel: 16 })];
  await expect(loadLora(file, small)).rejects.toThrow('Linear has nothing at "');
  const message = 'lora_A.weight is [2, 32], the model needs [2, 16]';
  await expect(loadLora(file, wide)).rejects.toThrow(message);
  expect(wide.parameterCount({ trainable: false })).toBe(0);
  expect(wide.generator.proj.constructor).toBe(Linear);
});

test('is refused for a model that has updates already', async () => {
  await expect(loadLora(file, trained)).rejects.toThrow('already has LoRA layers');
});

test.each<[string, Record<string, string>]>([
  ['its header has no settings of LoRA; was it saved by saveLora?', {}],
  ['the settings of LoRA in its header are not JSON', { lora: '{' }],
  ['the settings of LoRA in its header name no layer', { lora: '{}' }],
  ['wrong settings of LoRA for x: {"rank":0}', { lora: '{"x":{"rank":0}}' }],
  ['wrong settings of LoRA for x: null', { lora: '{"x":null}' }],
])('another file: %s', async (message, metadata) => {
  const other = join(root, 'other.safetensors');
  await writeSafetensors(other, { x: zeros([1]) }, metadata);
  await expect(loadLora(other, tinyModel(20))).rejects.toMatchObject({
    code: 'ERR_CHECKPOINT',
    message: expect.stringContaining(message) as string,
  });
});

test('saving a model without LoRA layers is an error', async () => {
  await expect(saveLora(file, tinyModel(20))).rejects.toThrow(
    'saveLora: the model has no LoRA layers; applyLora(model) adds them',
  );
});
