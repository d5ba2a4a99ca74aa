import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  addModelFlags,
  modelOptionsOf,
  type ModelFlags,
} from '../../../dist/cli/train/modelFlags.js';

function optionsOf(...flags: string[]) {
  const command = addModelFlags(new Command());
  return modelOptionsOf(command.parse(flags, { from: 'user' }).opts<ModelFlags>());
}

describe('the flags of the model', () => {
  it.each<[string[], number, number | undefined]>([
    [[], 0.1, undefined],
    [['--dropout', '0'], 0, undefined],
    [['--dropout', '0', '--attention-dropout', '0.1'], 0, 0.1],
    [['--attention-dropout', '0'], 0.1, 0],
  ])('leave the dropout of attention to makeModel unless it is given: %j', (flags, ...expected) => {
    const { dropout, attentionDropout } = optionsOf(...flags);
    expect([dropout, attentionDropout]).toEqual(expected);
  });
});
