import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readPairs, TorchError, type ReadPairsOptions } from 'torchformer';
// Internal: the command reads its standard input with it.
import { readLines } from '../../../../dist/data/reading/lineReader.js';
import { maxTextLength } from '../../../../dist/data/text.js';

/** The bytes in chunks of `size`. */
function chunks(content: string | Uint8Array, size = Infinity): Uint8Array[] {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) {
    parts.push(Uint8Array.from(bytes.subarray(at, at + size)));
  }
  return parts;
}

async function linesOf(content: string | Uint8Array, size = Infinity) {
  const lines: (string | null)[] = [];
  let fault: string | null = null;
  try {
    for await (const group of readLines(chunks(content, size), 'the input')) {
      for (const { text, number } of group) {
        lines.push(text);
        expect(number).toBe(lines.length);
      }
    }
  } catch (error) {
    expect(error).toBeInstanceOf(TorchError);
    expect((error as TorchError).code).toBe('ERR_DATA');
    fault = (error as TorchError).message;
  }
  return { lines, fault };
}

async function pairsOf(content: string | Uint8Array, options: Partial<ReadPairsOptions> = {}) {
  const { pairs, report } = await readPairs(chunks(content), {
    src: 'en',
    tgt: 'de',
    ...options,
  });
  return { pairs: pairs.map(({ src, tgt }) => [src, tgt]), report };
}

describe('lines of a text', () => {
  test.each([
    ['end with LF', 'a\nb\n', ['a', 'b']],
    ['end with CRLF', 'a\r\n\r\nb\r\n', ['a', '', 'b']],
    ['end with a lone CR', 'a\rb\r\rc', ['a', 'b', '', 'c']],
    ['end with all of them', 'a\r\rb\n\nc\r\n\nd', ['a', '', 'b', '', 'c', '', 'd']],
    ['have no byte order mark', '\ufeffa\nb\n\ufeffc\n', ['a', 'b', 'c']],
    ['may be of any script', 'ü上\n🙂\n', ['ü上', '🙂']],
    ['are none in an empty text', '', []],
  ])('%s, in chunks of any size', async (_name, content, expected) => {
    for (const size of [1, 2, 3, 1000]) {
      expect(await linesOf(content, size)).toEqual({ lines: expected, fault: null });
      expect((await linesOf(gzipSync(content), size)).lines).toEqual(expected);
    }
  });

  test.each([
    ['Latin-1', Buffer.from('one\ncaf\xe9\nthree\n', 'latin1'), /line 2: .*not valid UTF-8.* 7\)/],
    ['a character cut at the end', Buffer.from('one\nca\xc3', 'latin1'), /line 2: .*within.* 6\)/],
    ['a NUL', 'one\ntw\0o\n', /line 2: a NUL byte.* 6\)/],
  ])('behind which %s stands are given, then the fault', async (_name, content, message) => {
    for (const size of [1, 2, 1000]) {
      const { lines, fault } = await linesOf(content, size);
      expect(lines).toEqual(['one']);
      expect(fault).toMatch(message);
    }
  });

  test('count the bytes of a byte order mark in the offset', async () => {
    expect((await linesOf(Buffer.from('\xef\xbb\xbfa\n\xff', 'latin1'))).fault).toContain(' 5)');
  });

  test('above the limit are told apart and not kept', async () => {
    const long = 'x'.repeat(maxTextLength);
    const { lines } = await linesOf(`a\n${long}\n${long}x\n${'上'.repeat(maxTextLength)}\nb`, 4096);
    expect(lines).toEqual(['a', long, null, '上'.repeat(maxTextLength), 'b']);
    expect((await linesOf(`${long.repeat(5)}\nb\n`, 4096)).lines).toEqual([null, 'b']);
  });

  test('that have come do not wait for more bytes', async () => {
    const lines = readLines(
      (async function* () {
        yield Buffer.from('a\n');
        await new Promise(() => undefined);
      })(),
      'the input',
    );
    expect((await lines.next()).value).toEqual([{ number: 1, text: 'a' }]);
  });
});

describe('a file that is not text in UTF-8 is named', () => {
  const bytes = (hex: string, rest = '') =>
    Buffer.concat([Buffer.from(hex, 'hex'), Buffer.from(rest)]);
  const zip = (name: string) =>
    Buffer.concat([bytes('504b0304'), Buffer.alloc(26), Buffer.from(`${name}and so on`)]);
  test.each([
    ['bzip2', bytes('425a6839314159265359', 'x'), /a bzip2 archive.*bunzip2/],
    ['zstd', bytes('28b52ffd', 'xyz'), /a zstd archive.*zstd -d/],
    ['xz', bytes('fd377a585a00', 'xyz'), /an xz archive.*xz -d/],
    ['a workbook', zip('[Content_Types].xml'), /workbook.*\.xlsx.*CSV in UTF-8/],
    ['an OpenDocument table', zip('mimetypeapplication/'), /OpenDocument.*CSV/],
    ['a zip archive', zip('data.csv'), /a zip archive.*unpack/],
    ['an old workbook', bytes('d0cf11e0a1b11ae1', 'x'), /\.xls.*CSV/],
    ['Parquet', bytes('50415231', 'xxx'), /a Parquet file.*CSV/],
    ['UTF-16', Buffer.from('\ufeffen,de\n', 'utf16le'), /UTF-16 text \(little.*iconv -f UTF-16 /],
    ['UTF-16 without a mark', Buffer.from('en,de\n', 'utf16le'), /UTF-16 text without.*UTF-16LE/],
    ['UTF-32', bytes('fffe0000', 'e\0\0\0'), /UTF-32 text.*iconv/],
  ])('%s', async (_name, content, message) => {
    for (const size of [1, 5, 1000]) {
      expect((await linesOf(content, size)).fault).toMatch(message);
      await expect(
        readPairs(chunks(content, size), { src: 'en', tgt: 'de' }),
      ).rejects.toMatchObject({ code: 'ERR_DATA', message: expect.stringMatching(message) });
    }
    expect((await linesOf(gzipSync(content))).fault).toMatch(message);
  });

  test('and a text that begins like one is read', async () => {
    for (const text of ['BZh', 'BZh1 is a name', 'PK', 'PAR']) {
      for (const size of [1, 1000]) expect((await linesOf(text, size)).lines).toEqual([text]);
    }
  });
});

describe('the delimiter', () => {
  const expected = [
    ['Hi', 'Hallo'],
    ['Yes, please', 'Ja, bitte'],
  ];
  test.each([
    ['semicolons', 'en;de\nHi;Hallo\nYes, please;Ja, bitte\n'],
    ['bars', 'en|de\nHi|Hallo\nYes, please|Ja, bitte\n'],
    ['tabs', 'en\tde\nHi\tHallo\nYes, please\tJa, bitte\n'],
    ['commas', 'en,de\nHi,Hallo\n"Yes, please","Ja, bitte"\n'],
    ['commas, with a tab in a name', '"a\tb",en,de\n1,Hi,Hallo\n2,"Yes, please","Ja, bitte"\n'],
    ['semicolons, with a comma in a name', 'a,b;en;de\n1;Hi;Hallo\n2;Yes, please;Ja, bitte\n'],
    ['what sep= says', 'sep=^\r\nen^de\r\nHi^Hallo\r\nYes, please^Ja, bitte\r\n'],
    ['what a quoted sep= says', '"sep=;"\nen;de\nHi;Hallo\nYes, please;Ja, bitte\n'],
  ])('may be %s', async (_name, content) => {
    expect((await pairsOf(content)).pairs).toEqual(expected);
    for (const size of [1, 4]) {
      const { pairs } = await readPairs(chunks(content, size), { src: 'en', tgt: 'de' });
      expect(pairs.map(({ src, tgt }) => [src, tgt])).toEqual(expected);
    }
  });

  test('without a header is one that gives enough columns', async () => {
    const options = { src: 1, tgt: 2, header: false };
    expect((await pairsOf('Hi;Hallo\n', options)).pairs).toEqual([['Hi', 'Hallo']]);
    expect((await pairsOf('a;b,c\n', options)).pairs).toEqual([['a;b', 'c']]);
  });

  test('that is given counts, and so does the format', async () => {
    await expect(pairsOf('en;de\na;b\n', { format: 'csv' })).rejects.toThrow('"en;de"');
    expect((await pairsOf('sep=;\nen,de\na,b\n', { delimiter: ',' })).pairs).toEqual([['a', 'b']]);
  });

  test('said by sep= leaves rows, lines and offsets as they are in the file', async () => {
    const { pairs } = await readPairs(chunks('sep=;\nen;de\na;b\n'), { src: 'en', tgt: 'de' });
    expect(pairs[0]).toMatchObject({ row: 1, line: 3 });
    await expect(pairsOf(Buffer.from('sep=;\nen;de\na;b\nc;\xff\n', 'latin1'))).rejects.toThrow(
      /row 2 \(line 4\).*byte offset 18/,
    );
  });
});

describe('joined files', () => {
  const first = 'en,de\na,b\n';
  test.each([
    ['a second header', `${first}en,de\nc,d\n`],
    ['a second header with a byte order mark', `${first}\ufeffen,de\nc,d\n`],
  ])('%s is no pair', async (_name, content) => {
    await expect(pairsOf(content)).rejects.toThrow(
      /row 2 \(line 3\) has the header again, as in concatenated files/,
    );
    const { pairs, report } = await pairsOf(content, { onMalformed: 'skip' });
    expect(pairs).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
    expect(report.malformed).toMatchObject([{ row: 2, line: 3 }]);
  });

  test('without headers leave no byte order mark in a text', async () => {
    const options = { src: 1, tgt: 2, header: false };
    expect((await pairsOf('a,b\n\ufeffc,d\n', options)).pairs).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });
});

test('texts of which nothing would be seen are empty', async () => {
  const invisible = ['\u200b', '\u2060\ufeff', ' \u00ad', '\u3164', '\u0007', '\u200b \u200d'];
  const { pairs, report } = await pairsOf(
    `en,de\n${invisible.map((text) => `${text},x\n`).join('')}\u200b\n a\u200b,b\n`,
  );
  expect(pairs).toEqual([[' a\u200b', 'b']]);
  expect(report).toMatchObject({ empty: 7, kept: 1 });
});
