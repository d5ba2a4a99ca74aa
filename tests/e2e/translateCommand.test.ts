import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
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

describe('the format', () => {
  const input = 'twenty\n\nforty two\n';
  const plain = () => translate(input).stdout.trimEnd().split('\n');

  test('of n-best is the number, the output and its score, the best first, as Moses writes it', () => {
    const { status, stdout, stderr } = translate(input, '--beam', '3', '--n-best', '2');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const rows = stdout.trimEnd().split('\n');
    expect(rows.map((row) => row.split(' ||| ').length)).toEqual([3, 3, 3, 3, 3]);
    expect(rows.map((row) => row.split(' ||| ')[0])).toEqual(['0', '0', '1', '2', '2']);
    const [first, second] = rows.map((row) => Number(row.split(' ||| ')[2]));
    expect(first).toBeGreaterThanOrEqual(second as number);
    expect(rows[2]).toBe('1 |||  ||| 0.0000');
    const [best] = translate(input, '--beam', '3').stdout.split('\n');
    expect(rows[0]?.split(' ||| ')[1]).toBe(best);
  });

  test('with scores and alignments has them behind the output', () => {
    const { stdout } = translate(input, '--scores', '--alignments');
    const rows = stdout.trimEnd().split('\n');
    expect(rows.map((row) => row.split(' ||| ')[0])).toEqual(plain());
    const [, score, alignment] = (rows[2] as string).split(' ||| ');
    expect(score).toMatch(/^-\d+\.\d{4}$/);
    expect(alignment).toMatch(/^(\d+-\d+ ?)+$/);
  });

  test('as JSON has a line for each text', () => {
    const { stdout } = translate(input, '--json', '--scores', '--alignments', '--split');
    const records = stdout
      .trimEnd()
      .split('\n')
      .map((row) => JSON.parse(row) as Record<string, unknown>);
    expect(records.map(({ line, text }) => ({ line, text }))).toEqual(
      plain().map((text, index) => ({ line: index + 1, text })),
    );
    expect(records[0]).toMatchObject({
      sourceTokens: [...'twenty'],
      hypotheses: [{ text: records[0]?.text, tokens: expect.any(Array) as unknown }],
    });
  });
});

describe('the search', () => {
  test('samples the same with the same seed, and something else with another', () => {
    const many = fiftyPairs.map(({ src }) => src).join('\n');
    const sampled = (seed: string) =>
      translate(many, '--sample', '--temperature', '2', '--top-k', '9', '--seed', seed).stdout;
    expect(sampled('1')).toBe(sampled('1'));
    expect(sampled('1')).not.toBe(sampled('2'));
  });

  test('takes a precision and a length penalty', () => {
    const { status, stdout, stderr } = translate(
      'twenty\n',
      ...['--precision', 'int8', '--beam', '2', '--length-penalty', '0.6'],
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^.*\n$/);
  });

  test.each([
    [['--n-best', '3'], '--n-best must be at most the beam, 1, got 3; raise --beam to 3'],
    [['--seed', '1'], '--seed is for --sample'],
    [['--locale', 'de'], '--locale is for --split'],
    [['--split', '--locale', '!'], '--locale must be a BCP 47 tag'],
    [['--sample', '--top-p', '2'], '--top-p must be in (0, 1], got 2'],
    [['--sample', '--beam', '2'], 'sampling has no beam, got beam 2'],
    [['--precision', 'int4'], 'Allowed choices are float32, bfloat16, int8'],
    [['--length-penalty', 'x'], 'It must be a number of 0 or above.'],
    [['--input', 'a.txt', 'a text'], '--input cannot be used with texts'],
  ])('refuses %j, and names the flags', (given, message) => {
    const { status, stdout, stderr } = translate('', ...given);
    expect(stderr).toContain(message);
    expect([status, stdout]).toEqual([1, '']);
  });
});

describe('files', () => {
  const input = join(folder, 'in.txt');
  const output = join(folder, 'out.txt');

  test('are read and written, split into sentences', () => {
    writeFileSync(input, 'twenty\n Twenty one.  Forty!\n');
    const { status, stdout, stderr } = translate(
      '',
      ...['--input', input, '--output', output, '--split', '--locale', 'en'],
    );
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
    const [twenty, one, forty] = translate('twenty\nTwenty one.\nForty!\n').stdout.split('\n');
    expect(readFileSync(output, 'utf8')).toBe(`${twenty}\n ${one}  ${forty}\n`);
  });

  test('that are not UTF-8 are an error with file and line, and the output stays as it was', () => {
    writeFileSync(input, Buffer.from('twenty\ncaf\xe9\n', 'latin1'));
    writeFileSync(output, 'before\n');
    const { status, stderr } = translate('', '--input', input, '--output', output);
    expect(stderr).toBe(
      `torchformer: ${input}: line 2: this is not valid UTF-8 (byte offset 10) [ERR_DATA]\n`,
    );
    expect(status).toBe(1);
    expect(readFileSync(output, 'utf8')).toBe('before\n');
  });

  test('are refused before the model is loaded if the output is the input or a folder', () => {
    writeFileSync(input, 'twenty\n');
    const nowhere = ['--model', join(folder, 'nowhere')];
    expect(translate('', ...nowhere, '--input', input, '--output', input).stderr).toContain(
      `the output ${input} is the input`,
    );
    expect(translate('', ...nowhere, '--input', input, '--output', folder).stderr).toContain(
      `cannot save ${folder}: it is a folder`,
    );
    expect(readFileSync(input, 'utf8')).toBe('twenty\n');
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
