import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noGrad, saveModel } from 'torchformer';
import { fiftyPairs, tinyModel, tinyTask } from '../support/tinyTranslation.js';

const command = fileURLToPath(new URL('../../bin/torchformer.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'torchformer-translate-'));
const model = join(folder, 'model');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(async () => {
  const { tokenizer, specialIds } = await tinyTask();
  const transformer = tinyModel(tokenizer.vocabSize);
  await saveModel(model, transformer, { tokenizer, specialIds });
  transformer.dispose();
});

const flags = ['translate', '--model', model, '--threads', '1', '--max-length', '8'];

function translate(input: string | Uint8Array, ...more: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...flags, ...more], {
    encoding: 'utf8',
    input: typeof input === 'string' ? Buffer.from(input) : input,
  });
  return { status, stdout, stderr };
}

describe('standard input', () => {
  test('is read as files of pairs are: byte order mark, line ends, gzip', () => {
    const expected = translate('twenty\nthirty one\n\nforty\n');
    expect(expected).toMatchObject({ status: 0, stderr: '' });
    expect(expected.stdout.split('\n')).toHaveLength(5);
    for (const input of [
      '\ufefftwenty\nthirty one\n\nforty',
      'twenty\rthirty one\r\rforty\r',
      '\ufefftwenty\r\nthirty one\r\n\r\n\ufeffforty\r\n',
      'twenty\nthirty one\n\u200b\nforty\n',
    ]) {
      expect(translate(input)).toEqual(expected);
      expect(translate(gzipSync(input))).toEqual(expected);
    }
  });

  test.each([
    ['UTF-16', Buffer.from('\ufefftwenty\n', 'utf16le'), 0, /this is UTF-16 text.*iconv/],
    ['Latin-1', Buffer.from('twenty\ncaf\xe9\n', 'latin1'), 1, /line 2: .*UTF-8.*offset 10\)/],
    ['a cut character', Buffer.from('twenty\n\xc3', 'latin1'), 1, /line 2: .*within.*offset 7\)/],
    ['a NUL', 'twenty\nth\0irty\n', 1, /line 2: a NUL byte.*offset 9\)/],
  ])('that holds %s is refused with the place', (_name, input, lines, message) => {
    const { status, stdout, stderr } = translate(input);
    expect(stderr).toMatch(message);
    expect(stderr).toContain('[ERR_DATA]');
    expect(status).toBe(1);
    expect(stdout.split('\n').length - 1).toBe(lines);
  });

  test('that is a folder is refused', () => {
    const directory = openSync(folder, 'r');
    const { status, stderr } = spawnSync(process.execPath, [command, ...flags], {
      encoding: 'utf8',
      stdio: [directory, 'pipe', 'pipe'],
    });
    closeSync(directory);
    expect(stderr).toBe('torchformer: standard input is a folder, not a file [ERR_DATA]\n');
    expect(status).toBe(1);
  });
});

describe('a text that is too long', () => {
  const long = 'twenty one. thirty two. forty three. fifty four';
  const input = `twenty\n${long}\nthirty\n`;

  test('ends the command after the lines before it, and the error names the flag', () => {
    const { status, stdout, stderr } = translate(input);
    expect(stderr).toMatch(/line 2 of the input has 49 tokens .* accepts 32; .*--on-too-long skip/);
    expect(status).toBe(1);
    expect(stdout).toBe(translate('twenty\n').stdout);
    expect(translate('', 'twenty', long).stderr).toContain('text 2 has 49 tokens');
  });

  test('is left empty with skip, and counted', () => {
    const { status, stdout, stderr } = translate(input, '--on-too-long', 'skip');
    expect(stderr).toBe('skipped 1 of 3 lines that are too long for the model: line 2\n');
    expect(status).toBe(0);
    expect(stdout).toBe(translate('twenty\n\nthirty\n').stdout);
  });

  test('is translated in parts with split, at the ends of sentences', () => {
    const { status, stdout, stderr } = translate(input, '--on-too-long', 'split');
    expect(stderr).toBe('split 1 of 3 lines that are too long for the model: line 2\n');
    expect(status).toBe(0);
    const parts = translate('twenty\ntwenty one. thirty two.\nforty three. fifty four\nthirty\n');
    const [first, second, third, fourth] = parts.stdout.split('\n');
    expect(stdout).toBe(`${first}\n${second} ${third}\n${fourth}\n`);
  });

  test('by its characters is refused before it is tokenized, on every way', () => {
    const large = 'a'.repeat(8_000_000);
    const start = performance.now();
    const { status, stdout, stderr } = translate(`twenty\n${large}\nthirty\n`);
    expect(stderr).toContain('line 2 of the input has more than 100,000 characters');
    expect(status).toBe(1);
    expect(stdout.split('\n')).toHaveLength(2);
    const skipped = translate(`twenty\n${large}\nthirty\n`, '--on-too-long', 'skip');
    expect(skipped.stdout).toBe(translate('twenty\n\nthirty\n').stdout);
    // Tokenizing one of them takes longer than all this.
    expect(performance.now() - start).toBeLessThan(15_000);
  });
});

describe('the output', () => {
  /** Enough work for many seconds. */
  const many = Array.from({ length: 15_000 }, (_, row) => fiftyPairs[row % 50]?.src).join('\n');

  test('begins long before the input is done, and Ctrl-C keeps what is done', async () => {
    const args = [command, ...flags, '--max-length', '32'];
    const child = spawn(process.execPath, args, { stdio: 'pipe' });
    child.stdin.on('error', () => undefined);
    child.stdin.end(`${many}\n`);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += String(chunk);
      child.kill('SIGINT');
    });
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code).toBe(130);
    const lines = output.split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.length).toBeGreaterThanOrEqual(32);
    expect(lines.length).toBeLessThan(5000);
  });

  test('that nobody wants more of ends the command quietly', () => {
    const input = join(folder, 'many.txt');
    writeFileSync(input, many);
    const script =
      '"$0" "$1" translate --model "$2" --max-length 32 < "$3" | head -1; echo "${PIPESTATUS[0]}"';
    const { stdout, stderr } = spawnSync(
      'bash',
      ['-c', script, process.execPath, command, model, input],
      { encoding: 'utf8' },
    );
    expect(stdout).toMatch(/^.*\n0\n$/);
    expect(stderr).toBe('');
  });
});

describe('texts that begin with a hyphen', () => {
  test.each([['- one'], ['-5 degrees'], ['--one']])('%j: the error shows --', (text) => {
    const { status, stderr } = translate('', text);
    expect(stderr).toContain(`unknown option '${text}'`);
    expect(stderr).toContain('Put a text that begins with a hyphen after --, as in: -- "- one"');
    expect(status).toBe(1);
  });

  test('are translated behind --, and a lone hyphen anyway', () => {
    const expected = translate('- one\n-\n').stdout;
    expect(translate('', '--', '- one', '-')).toEqual({ status: 0, stdout: expected, stderr: '' });
    expect(translate('', '-').stdout).toBe(translate('-\n').stdout);
  });
});

test('weights that are NaN name the line of the input', async () => {
  const broken = join(folder, 'broken');
  const { tokenizer, specialIds } = await tinyTask();
  const transformer = tinyModel(tokenizer.vocabSize);
  noGrad(() => transformer.generator.proj.bias?.fill_(NaN));
  await saveModel(broken, transformer, { tokenizer, specialIds });
  transformer.dispose();
  const { status, stderr, stdout } = translate('\n\ntwenty one\n', '--model', broken);
  expect(stderr).toMatch(/^torchformer: line 3 of the input: .*NaN.*\[ERR_NON_FINITE\]\n$/);
  expect([status, stdout]).toEqual([1, '']);
});

test('a folder that holds no model is named before anything is read', () => {
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const { status, stderr } = translate('twenty\n', '--model', empty);
  expect(stderr).toContain(`${empty}: no model in it`);
  expect(status).toBe(1);
});
