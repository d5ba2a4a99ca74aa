import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nowhere, root, runCommand, temporaryFolder } from './support.js';

const commands = ['train', 'translate', 'report', 'serve', 'setup', 'doctor'];

describe('the command line', () => {
  it('prints its version', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(runCommand(['--version'])).toEqual({ status: 0, output: `${version}\n`, errors: '' });
  });

  it('lists its commands in --help', () => {
    const { status, output } = runCommand(['--help']);
    expect(status).toBe(0);
    for (const name of commands) expect(output).toContain(`  ${name}`);
  });

  it('explains each command without loading anything', () => {
    for (const name of commands) {
      const { status, output } = runCommand([name, '--help'], nowhere(temporaryFolder()));
      expect({ name, status }).toEqual({ name, status: 0 });
      expect(output).toContain(`Usage: torchformer ${name}`);
    }
  });

  it.each([
    ['an unknown command', ['fly'], "unknown command 'fly'"],
    ['an unknown flag', ['doctor', '--loud'], "unknown option '--loud'"],
    ['a surplus argument', ['doctor', 'now'], 'too many arguments'],
    ['flags that exclude each other', ['setup', '--cpu', '--cuda'], 'cannot be used with'],
    ['a flag without its value', ['setup', '--from'], 'argument missing'],
  ])('refuses %s with a reason and exit code 1', (_, args, reason) => {
    const { status, output, errors } = runCommand(args);
    expect({ status, output }).toEqual({ status: 1, output: '' });
    expect(errors).toContain(reason);
  });

  it('without a command shows the help and fails', () => {
    const { status, errors } = runCommand([]);
    expect(status).toBe(1);
    expect(errors).toContain('Usage: torchformer');
  });

  it('shows a stack only with TORCHFORMER_DEBUG', () => {
    const args = ['setup', '--from', '/does/not/exist'];
    const changes = { TORCHFORMER_CACHE: temporaryFolder(), TORCHFORMER_DEBUG: null };
    const plain = runCommand(args, changes);
    expect(plain.status).toBe(1);
    expect(plain.errors).toBe('torchformer: /does/not/exist does not exist [ERR_NATIVE_LOAD]\n');
    expect(runCommand(args, { ...changes, TORCHFORMER_DEBUG: '1' }).errors).toContain('    at ');
  });
});
