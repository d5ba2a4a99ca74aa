import { Command } from 'commander';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoraLinear, saveModel, Tokenizer, trainCharacters } from 'torchformer';
import {
  addFineTuningFlags,
  fineTuningFault,
  prepareFineTuning,
  type FineTuningFlags,
} from '../../../dist/cli/train/fineTuning.js';
import { tinyModel, weightsOf } from '../../support/tinyTranslation.js';

function flagsOf(...args: string[]): FineTuningFlags {
  const command = addFineTuningFlags(new Command().exitOverride());
  return command.parse(args, { from: 'user' }).opts<FineTuningFlags>();
}

let root: string;
let tokenizer: Tokenizer;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-fine-tuning-'));
  tokenizer = Tokenizer.fromJson(await trainCharacters(['ab']));
  await saveModel(root, tinyModel(tokenizer.vocabSize), { tokenizer });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function prepared(...args: string[]) {
  const model = tinyModel(tokenizer.vocabSize);
  // Other values than in the folder.
  model.encoder.layers
    .at(0)
    .selfAttn.parameters()
    .forEach((one) => void one.detach().fill_(7));
  const lines: string[] = [];
  await prepareFineTuning(model, tokenizer, flagsOf(...args), (line) => lines.push(line));
  return { model, lines };
}

describe('torchformer train, fine-tuning', () => {
  it('without flags, leaves the model as it is', async () => {
    const { model, lines } = await prepared();
    expect(lines).toEqual([]);
    expect(model.parameterCount({ trainable: false })).toBe(0);
  });

  it('--init-from takes the weights and says which', async () => {
    const { model, lines } = await prepared('--init-from', root);
    expect(weightsOf(model)).toEqual(weightsOf(tinyModel(tokenizer.vocabSize)));
    expect(lines).toEqual([
      expect.stringMatching(/^initialized (\d+) of \1 tensors from /),
      `tokens: ${tokenizer.vocabSize} matched`,
    ]);
  });

  it('--init-exclude leaves out names that match one of its patterns', async () => {
    const { model } = await prepared(
      '--init-from',
      root,
      '--init-exclude',
      'decoder.*, *.self_attn.*',
    );
    const name = 'encoder.layers.0.self_attn.linears.0.weight';
    expect(model.getParameter(name).max().item()).toBe(7);
  });

  it('--freeze freezes by patterns, and says how much is trained', async () => {
    const { model, lines } = await prepared('--freeze', '*_embed.*,encoder.*');
    expect(model.generator.proj.weight.requiresGrad).toBe(true);
    expect(model.getParameter('encoder.norm.a_2').requiresGrad).toBe(false);
    expect(lines[0]).toMatch(
      /^frozen: \*_embed\.\*,encoder\.\*; [\d,]+ of [\d,]+ parameters are trained$/,
    );
  });

  it('--lora replaces layers after the weights are there', async () => {
    const args = ['--lora', '4', '--lora-alpha', '8', '--lora-targets', 'generator.proj'];
    const { model, lines } = await prepared('--init-from', root, ...args);
    const layer = model.generator.proj as LoraLinear;
    expect(layer).toBeInstanceOf(LoraLinear);
    expect([layer.rank, layer.scale]).toEqual([4, 2]);
    expect(lines[2]).toMatch(
      /^low-rank updates of 1 layer: [\d,]+ of [\d,]+ parameters are trained$/,
    );
  });

  it.each<[string[], string | null]>([
    [[], null],
    [['--init-from', 'runs/a', '--init-include', 'encoder.*', '--lora', '2'], null],
    [['--init-include', 'encoder.*'], '--init-include needs --init-from'],
    [['--init-partial'], '--init-partial needs --init-from'],
    [['--lora-alpha', '2'], '--lora-alpha needs --lora'],
    [['--lora', '2', '--freeze', 'x'], '--lora freezes everything but its updates: omit --freeze'],
  ])('%j: %s', (args, fault) => {
    expect(fineTuningFault(flagsOf(...args))).toBe(fault);
  });
});
