import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { saveModel, Tokenizer, trainCharacters } from 'torchformer';
import { root, runCommand } from '../process/support.js';
import { fiftyPairs, tinyModel, tinyTask } from '../support/tinyTranslation.js';

const command = join(root, 'bin/torchformer.js');
const folder = mkdtempSync(join(tmpdir(), 'torchformer-streams-'));
const model = join(folder, 'model');
const pairs = join(folder, 'pairs.csv');
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  const rows = fiftyPairs.map(({ src, tgt }) => `${src},${tgt}`);
  writeFileSync(pairs, `src,tgt\n${rows.join('\n')}\n`);
  await saveTiny(model);
});

async function saveTiny(target: string): Promise<void> {
  const { tokenizer, specialIds } = await tinyTask();
  const transformer = tinyModel(tokenizer.vocabSize);
  await saveModel(target, transformer, { tokenizer, specialIds });
  transformer.dispose();
}

const trainFlags = (out: string) => [
  ...['train', '--train', pairs, '--src', 'src', '--tgt', 'tgt', '--out', out, '--layers', '1'],
  ...['--d-model', '16', '--d-ff', '16', '--heads', '2', '--vocab-size', '300', '--epochs', '2'],
];

/** Runs a command line in a shell, for its redirections. */
async function runShell(line: string): Promise<{ status: number; errors: string }> {
  const child = spawn('bash', ['-o', 'pipefail', '-c', line], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [status] = (await once(child, 'exit')) as [number];
  return { status, errors };
}

const quoted = (args: readonly string[]) => args.map((arg) => `'${arg}'`).join(' ');
const torchformer = (args: readonly string[]) =>
  `'${process.execPath}' '${command}' ${quoted(args)}`;

describe('a full output', () => {
  it('is one line on standard error and exit code 1', async () => {
    for (const args of [['doctor'], ['translate', '--model', model, fiftyPairs[0]?.src ?? '']]) {
      const { status, errors } = await runShell(`${torchformer(args)} >/dev/full`);
      expect(status).toBe(1);
      expect(errors).toMatch(/^torchformer: .*ENOSPC.*\n$/);
    }
  });

  it('does not stop a training whose progress nobody reads', async () => {
    const lost = join(folder, 'lost');
    expect((await runShell(`${torchformer(trainFlags(lost))} 2>/dev/full`)).status).toBe(0);
    expect(readdirSync(lost)).toContain('last');
    const piped = join(folder, 'piped');
    await runShell(`${torchformer(trainFlags(piped))} 2>&1 >/dev/null | true`);
    expect(readdirSync(piped)).toContain('last');
  });
});

it('a reader that has enough is no fault', async () => {
  expect((await runShell(`${torchformer(['--help'])} | head -1`)).status).toBe(0);
});

it('a line that is too long does not lose those before it', () => {
  const line = fiftyPairs[0]?.src ?? '';
  const input = `${line}\n${`${line} `.repeat(500)}\n${line}\n`;
  const { status, output, errors } = runCommand(['translate', '--model', model], {}, input);
  expect(status).toBe(1);
  expect(output.split('\n')).toHaveLength(2);
  expect(errors).toContain('line 2 of the input');
});

describe('what cannot work fails before any other work', () => {
  it.each([
    ['a file as --out', () => trainFlags(pairs), 'a file with that name already exists'],
    [
      'a GPU that is not there',
      () => [...trainFlags(join(folder, 'gpu')), '--device', 'cuda'],
      'no CUDA',
    ],
  ])('%s', (_name, args, reason) => {
    const { status, errors } = runCommand(args());
    expect(status).toBe(1);
    expect(errors.trim().split('\n')).toHaveLength(1);
    expect(errors).toContain(reason);
  });
});

it('a tokenizer of another size than the one saved is named at load', async () => {
  const other = Tokenizer.fromJson(await trainCharacters(['a']));
  const swapped = join(folder, 'swapped');
  await saveTiny(swapped);
  writeFileSync(join(swapped, 'tokenizer.json'), other.toJson());
  const { status, errors } = runCommand(['translate', '--model', swapped, 'a']);
  expect(status).toBe(1);
  expect(errors).toMatch(
    /tokenizer\.json: .*config\.json says that the model was saved with a tokenizer of/,
  );
});
