import { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { applyConfigFile } from '../../../dist/cli/train/configFile.js';
import { addTrainFlags, flagsOfTheCall } from '../../../dist/cli/train/trainFlags.js';

const file = fileURLToPath(new URL('../../../examples/multi30k.yaml', import.meta.url));

test('examples/multi30k.yaml names every key of a config once, set or commented out', () => {
  const keys = addTrainFlags(new Command())
    .options.filter((option) => !flagsOfTheCall.includes(option.attributeName()))
    .map((option) => (option.long ?? '').replace(/^--(no-)?/, ''));
  const named = [...readFileSync(file, 'utf8').matchAll(/^ *(?:# +)?([a-z0-9-]+): \S+$/gm)];
  expect(named.map(([, key]) => key).sort()).toEqual(keys.sort());
});

test('examples/multi30k.yaml is a valid config', async () => {
  const command = addTrainFlags(new Command()).parse([], { from: 'user' });
  await applyConfigFile(command, file, flagsOfTheCall);
  expect(command.opts()).toMatchObject({ src: 'de', layers: 3, dModel: 256, schedule: 'noam' });
});
