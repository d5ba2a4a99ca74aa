/** Files of lines: what is read, what is written, and what is refused. */
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Translator } from 'torchformer';
import { tinyModel, tinyTask } from '../../support/tinyTranslation.js';

const root = mkdtempSync(join(tmpdir(), 'torchformer-lines-'));
let translator: Translator;
let folder: string;
let input: string;
let output: string;
beforeAll(async () => {
  const { tokenizer, specialIds } = await tinyTask();
  translator = new Translator(tinyModel(tokenizer.vocabSize).eval(), { tokenizer, specialIds });
});
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  input = join(folder, 'in.txt');
  output = join(folder, 'out.txt');
});
afterAll(() => {
  translator.dispose();
  rmSync(root, { recursive: true, force: true });
});

const maxLength = 4;
const nothing = { count: 0, first: [] };

describe('each line of the input gives a line of the output:', () => {
  test.each<[string, string | Uint8Array, string[]]>([
    ['with a newline at the end', 'twenty\nforty\n', ['twenty', 'forty']],
    ['without one', 'twenty\nforty', ['twenty', 'forty']],
    ['CRLF', 'twenty\r\n\r\nforty\r\n', ['twenty', '', 'forty']],
    ['a lone CR', 'twenty\rforty', ['twenty', 'forty']],
    ['a byte order mark', '\ufefftwenty\n', ['twenty']],
    ['blank lines', '\n \n\t\n', ['', '', '']],
    ['control characters', 'twenty\u0007\u001b[0m\n', ['twenty\u0007\u001b[0m']],
    ['unknown scripts', 'ቤት\u{10ffff}\n', ['ቤት\u{10ffff}']],
    ['gzip', gzipSync('twenty\nforty\n'), ['twenty', 'forty']],
    ['nothing', '', []],
  ])('%s', async (_name, content, lines) => {
    writeFileSync(input, content);
    const report = await translator.translateFile(input, output, { maxLength });
    const expected = await translator.translate(lines, { maxLength });
    expect(readFileSync(output, 'utf8')).toBe(expected.map((line) => `${line}\n`).join(''));
    expect(report).toEqual({ lines: lines.length, skipped: nothing, split: nothing });
  });

  test('the input may be a URL, or bytes in chunks that end anywhere', async () => {
    writeFileSync(input, 'twenty\nforty\n');
    await translator.translateFile(pathToFileURL(input), output, { maxLength });
    const expected = readFileSync(output, 'utf8');
    const bytes = [...Buffer.from('twenty\nforty\n')].map((byte) => Uint8Array.of(byte));
    await translator.translateFile(bytes, output, { maxLength });
    expect(readFileSync(output, 'utf8')).toBe(expected);
  });

  test('a line of 10,000 words is too long, and is translated in parts with split', async () => {
    writeFileSync(input, `forty\n${'twenty '.repeat(10_000)}\n`);
    await expect(translator.translateFile(input, output)).rejects.toMatchObject({
      name: 'TextTooLongError',
      index: 1,
      tokens: 70_002,
    });
    expect(existsSync(output)).toBe(false);
    await translator.translateFile(input, output, { maxLength: 1, split: true });
    expect(readFileSync(output, 'utf8').split('\n')).toHaveLength(3);
  });

  test('progress counts the lines', async () => {
    writeFileSync(input, 'forty\n'.repeat(20));
    const counts: number[] = [];
    await translator.translateFile(input, output, {
      maxLength: 1,
      batchSize: 4,
      window: 8,
      onProgress: ({ lines }) => counts.push(lines),
    });
    expect(counts).toEqual([4, 12, 20]);
  });
});

describe('an input that cannot be read leaves the output as it was:', () => {
  test.each<[string, string | Uint8Array, RegExp]>([
    [
      'Latin-1',
      Buffer.from('twenty\ncaf\xe9\n', 'latin1'),
      /in\.txt: line 2: this is not valid UTF-8 \(byte offset 10\)/,
    ],
    ['a surrogate in bytes', Buffer.from([0x61, 0xed, 0xa0, 0x80]), /in\.txt: line 1: .*UTF-8/],
    ['a cut character', Buffer.from('twenty\n\xc3', 'latin1'), /in\.txt: line 2: .*within/],
    ['a NUL', 'twenty\nth\0irty\n', /in\.txt: line 2: a NUL byte/],
    ['UTF-16', Buffer.from('\ufefftwenty\n', 'utf16le'), /in\.txt: this is UTF-16 text/],
    ['damaged gzip', gzipSync('twenty\n'.repeat(99)).subarray(0, 30), /in\.txt: .*gzip data/],
  ])('%s', async (_name, content, message) => {
    writeFileSync(input, content);
    writeFileSync(output, 'before\n');
    const translating = translator.translateFile(input, output, { maxLength });
    await expect(translating).rejects.toMatchObject({ code: 'ERR_DATA' });
    await expect(translating).rejects.toThrow(message);
    expect(readFileSync(output, 'utf8')).toBe('before\n');
    expect(readdirSync(folder).sort()).toEqual(['in.txt', 'out.txt']);
  });

  test('a folder', async () => {
    mkdirSync(input);
    await expect(translator.translateFile(input, output)).rejects.toThrow(
      /in\.txt: this is a folder, not a file/,
    );
    expect(readdirSync(folder)).toEqual(['in.txt']);
  });

  test('a file that does not exist', async () => {
    await expect(translator.translateFile(input, output)).rejects.toThrow(
      /in\.txt: there is no such file/,
    );
  });
});

describe('an output that cannot be written is refused before anything is translated:', () => {
  beforeEach(() => writeFileSync(input, 'twenty\n'));

  test('the input itself, by any name', async () => {
    const link = join(folder, 'link.txt');
    const second = join(folder, 'second.txt');
    symlinkSync(input, link);
    linkSync(input, second);
    for (const same of [input, join(folder, '.', 'in.txt'), link, second]) {
      const translating = translator.translateFile(input, same);
      await expect(translating).rejects.toThrow(RangeError);
      await expect(translating).rejects.toThrow(/the output .* is the input .*in\.txt; choose/);
    }
    expect(readFileSync(input, 'utf8')).toBe('twenty\n');
  });

  test('a folder', async () => {
    mkdirSync(output);
    const translating = translator.translateFile(input, output);
    await expect(translating).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
    await expect(translating).rejects.toThrow(/cannot save .*out\.txt: it is a folder/);
  });

  test('a device', async () => {
    await expect(translator.translateFile(input, '/dev/null')).rejects.toThrow(
      /cannot save \/dev\/null: it is not a regular file/,
    );
  });

  test('in a folder that does not exist', async () => {
    await expect(translator.translateFile(input, join(folder, 'no', 'out.txt'))).rejects.toThrow(
      /cannot save .*: the folder does not exist/,
    );
  });

  test.skipIf(process.getuid?.() === 0)('in a folder without permission', async () => {
    const closed = join(folder, 'closed');
    mkdirSync(closed);
    chmodSync(closed, 0o500);
    await expect(translator.translateFile(input, join(closed, 'out.txt'))).rejects.toThrow(
      /cannot save .*: permission denied/,
    );
  });

  test('without a path', async () => {
    await expect(translator.translateFile(input, '')).rejects.toThrow(/output must be/);
    await expect(translator.translateFile(7 as unknown as string, output)).rejects.toThrow(
      /the source must be a path/,
    );
  });
});

describe('an abort', () => {
  beforeEach(() => writeFileSync(input, 'twenty\n'.repeat(1000)));

  test('before it begins rejects with the reason', async () => {
    const signal = AbortSignal.abort(new Error('not today'));
    await expect(translator.translateFile(input, output, { signal })).rejects.toThrow('not today');
    expect(readdirSync(folder)).toEqual(['in.txt']);
  });

  test('during the translation rejects with the reason and leaves no file behind', async () => {
    const controller = new AbortController();
    const reason = Object.assign(new Error('enough'), { code: 'E_STOP' });
    const translating = translator.translateFile(input, output, {
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    });
    await expect(translating).rejects.toBe(reason);
    expect(readdirSync(folder)).toEqual(['in.txt']);
  });

  test('after it has ended changes nothing', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const report = await translator.translateFile(input, output, { signal, maxLength: 1 });
    controller.abort();
    expect(report.lines).toBe(1000);
    expect(readFileSync(output, 'utf8').split('\n')).toHaveLength(1001);
  });
});
