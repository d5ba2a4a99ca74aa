import { Command } from 'commander';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyConfigFile, configText } from '../../../dist/cli/train/configFile.js';
import {
  addTrainFlags,
  flagsOfTheCall,
  type TrainFlags,
} from '../../../dist/cli/train/trainFlags.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-config-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The flags in force with a file, and flags on the command line. */
async function flagsOf(
  yaml: string,
  ...args: string[]
): Promise<{ flags: TrainFlags; command: Command }> {
  const command = addTrainFlags(new Command()).parse(args, { from: 'user' });
  const file = join(folder, 'train.yaml');
  writeFileSync(file, yaml);
  await applyConfigFile(command, file, flagsOfTheCall);
  return { flags: command.opts<TrainFlags>(), command };
}

describe('a config file', () => {
  it('has the settings of the flags, in sections or without', async () => {
    const { flags } = await flagsOf(
      'model:\n  layers: 3\n  bias: false\n  dropout: 0.2\nlr: 1e-3\nbucket: true\nepochs: 7\n',
    );
    expect(flags).toMatchObject({
      ...{ layers: 3, bias: false, dropout: 0.2, lr: 1e-3, bucket: true, epochs: 7 },
      // A default of the flags.
      heads: 8,
    });
  });

  it('gives way to flags', async () => {
    const { flags } = await flagsOf('layers: 3\nheads: 4\n', '--layers', '2');
    expect([flags.layers, flags.heads]).toEqual([2, 4]);
  });

  it('that is empty changes nothing', async () => {
    expect((await flagsOf('# nothing\n')).flags.layers).toBe(6);
  });

  it.each([
    [
      'layer: 3',
      '1: there is no setting "layer"; did you mean "layers"?; settings: train, validate',
    ],
    [
      'model:\n  layer: 3',
      '2: there is no setting "layer"; did you mean "layers"?; settings of model: layers',
    ],
    [
      'modell:\n  layers: 3',
      '1: there is no section "modell"; did you mean "model"?; sections: data',
    ],
    ['data:\n  layers: 3', '2: "layers" belongs to the section "model"'],
    ['layers: 0', '1: layers: 0 is invalid. It must be an integer from 1'],
    ['layers: three', '1: layers: "three" is invalid'],
    ['layers:', '1: layers has no value'],
    ['layers: [1, 2]', '1: layers must be one value, got [1,2]'],
    ['bucket: 1', '1: bucket must be true or false, got 1'],
    ['layers: true', '1: layers must be one value, got true'],
    ['schedule: noma', '1: schedule: "noma" is invalid. Allowed choices are constant, noam'],
    ['layers: 3\nmodel:\n  layers: 4', '3: layers is set twice, first in line 1'],
    ['batch-size: 3\nbatch-tokens: 100', '2: batch-tokens and batch-size exclude each other'],
    ['resume: true', '1: there is no setting "resume"'],
    ['- layers', 'must have keys with values'],
    ['a: [', 'not valid YAML'],
  ])('is refused with its line and what is valid: %j', async (yaml, message) => {
    await expect(flagsOf(yaml)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringContaining(message) as string,
    });
  });

  it('that does not exist is named', async () => {
    const command = addTrainFlags(new Command());
    const missing = join(folder, 'missing.yaml');
    await expect(applyConfigFile(command, missing, [])).rejects.toThrow(`${missing}: no such file`);
  });
});

describe('the settings in force', () => {
  it('are a config file that gives the same settings again', async () => {
    const args = [
      '--batch-tokens',
      '100',
      '--no-bias',
      '--lr',
      '0.1',
      '--delimiter',
      'tab',
      '--pad',
      '3',
    ];
    const { flags, command } = await flagsOf('layers: 3\n', ...args);
    const again = await flagsOf(configText(command, flagsOfTheCall));
    expect(again.flags).toEqual(flags);
  });
});
