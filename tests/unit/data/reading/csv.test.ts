import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeReport, readPairs, TorchError, type ReadPairsOptions } from 'torchformer';

const columns = { src: 'src', tgt: 'tgt' };
type Options = Partial<ReadPairsOptions>;

/** The bytes of a text or of byte values, in chunks of `size`. */
function chunks(content: string | Uint8Array, size = Infinity): Uint8Array[] {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length)) {
    parts.push(Uint8Array.from(bytes.subarray(at, at + size)));
  }
  return parts;
}

async function read(content: string | Uint8Array, options: Options = {}, size = Infinity) {
  return readPairs(chunks(content, size), { ...columns, ...options });
}

async function pairsOf(content: string | Uint8Array, options: Options = {}, size = Infinity) {
  const { pairs } = await read(content, options, size);
  return pairs.map(({ src, tgt }) => [src, tgt]);
}

/** The message of the TorchError ERR_DATA that reading must end in. */
async function faultOf(content: string | Uint8Array, options: Options = {}, size = Infinity) {
  const error = await read(content, options, size).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TorchError);
  expect((error as TorchError).code).toBe('ERR_DATA');
  return (error as TorchError).message;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-csv-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

describe('a CSV file', () => {
  const multiline =
    'src,tgt\r\n"l1\nl2","x ""q"" y"\r\n"m\r\nn",z\r\nlast,last\r\nmac,os\rnine,9\nend,"no line end"';
  const rows = [
    ['l1\nl2', 'x "q" y'],
    ['m\r\nn', 'z'],
    ['last', 'last'],
    ['mac', 'os'],
    ['nine', '9'],
    ['end', 'no line end'],
  ];

  test('may have quotes, line ends within quotes, and every kind of line end', async () => {
    expect(await pairsOf(multiline)).toEqual(rows);
  });

  test('gives the same rows whatever the size of the chunks', async () => {
    const whole = await read(multiline);
    for (let size = 1; size <= 20; size++) expect(await read(multiline, {}, size)).toEqual(whole);
  });

  test('gives each pair the number of its row and of the line it begins on', async () => {
    const { pairs } = await read(multiline);
    expect(pairs.map(({ row }) => row)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(pairs.map(({ line }) => line)).toEqual([2, 4, 6, 7, 8, 9]);
  });

  test('may have its columns in any order and among others', async () => {
    expect(await pairsOf('id,tgt,src\n1,b,a\n')).toEqual([['a', 'b']]);
  });

  test('may begin with a byte order mark, before a quoted header too', async () => {
    const content = Buffer.from('\ufeff"src","tgt"\n"a","b"\n');
    expect([...content.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    for (const size of [1, 2, 3, 4, 100]) {
      expect(await pairsOf(content, {}, size)).toEqual([['a', 'b']]);
    }
  });

  test('keeps spaces, empty quotes and non-Latin text in its cells as they are', async () => {
    expect(await pairsOf('src,tgt\n a ,"，，"\n"""",😀\n')).toEqual([
      [' a ', '，，'],
      ['"', '😀'],
    ]);
  });

  test('may have cells of 10 MB', async () => {
    const large = 'x'.repeat(10_000_000);
    const [pair] = await pairsOf(`src,tgt\n"${large}",y\n`, {}, 65_536);
    expect(pair?.[0]?.length).toBe(large.length);
    expect(pair?.[1]).toBe('y');
  });

  test('may have another delimiter', async () => {
    expect(await pairsOf('src;tgt\na,1;b\n', { delimiter: ';' })).toEqual([['a,1', 'b']]);
  });
});

describe('a TSV file', () => {
  test('is known by a tab in its first line, and its quotes are text', async () => {
    expect(await pairsOf('src\ttgt\n"a\tsaid "b"\n')).toEqual([['"a', 'said "b"']]);
  });

  test('may be told by option', async () => {
    expect(await pairsOf('src\ttgt\n"a\tb"\tc\n', { quoted: true })).toEqual([['a\tb', 'c']]);
    expect(await faultOf('src\ttgt\na\tb\n', { format: 'csv' })).toMatch(/"src\\ttgt".*delimiter/);
    expect(await faultOf('src,tgt\na,b\n', { format: 'tsv' })).toContain('"src,tgt"');
  });

  test('without a header has columns by number, from 1', async () => {
    const content = 'Hi.\t嗨。\tCC-BY 1\n"Run.\t你用跑的。\tCC-BY 2\n';
    const expected = [
      ['Hi.', '嗨。'],
      ['"Run.', '你用跑的。'],
    ];
    for (const size of [1, 5, 100]) {
      const { pairs } = await read(content, { src: 1, tgt: 2, header: false }, size);
      expect(pairs.map(({ src, tgt }) => [src, tgt])).toEqual(expected);
      expect(pairs.map(({ row, line }) => [row, line])).toEqual([
        [1, 1],
        [2, 2],
      ]);
    }
  });

  test('without a header that has fewer columns says how many', async () => {
    const options = { src: 1, tgt: 3, header: false };
    expect(await faultOf('a\tb\n', options)).toMatch(/no column 3; the first row has 2/);
  });
});

describe('a gzip file', () => {
  const content = 'src,tgt\nüber,上\n';

  test('is known by its content, whatever its name', async () => {
    const { pairs, report } = await readPairs(file('plain.csv', gzipSync(content)), columns);
    expect(pairs).toEqual([{ src: 'über', tgt: '上', row: 1, line: 2 }]);
    expect(report.name).toContain('plain.csv');
    await expect(readPairs(file('no.gz', content), columns)).resolves.toMatchObject({ pairs });
  });

  test('may have several members and a byte order mark, in chunks of any size', async () => {
    const bytes = Buffer.concat([gzipSync('\ufeffsrc,t'), gzipSync('gt\na,b\n')]);
    for (const size of [1, 7, 1000]) expect(await pairsOf(bytes, {}, size)).toEqual([['a', 'b']]);
  });

  test('that is cut short or damaged is refused', async () => {
    const bytes = gzipSync(content + 'a,b\n'.repeat(100));
    expect(await faultOf(bytes.subarray(0, bytes.length - 20))).toMatch(/gzip data is damaged/);
    const damaged = Buffer.from(bytes);
    damaged.writeUInt32LE(0, bytes.length - 8);
    expect(await faultOf(damaged)).toMatch(/gzip data is damaged/);
  });
});

describe('columns that are not there', () => {
  test.each([
    ['a header without it', 'a,b\n1,2\n', /no column "src".*found are "a", "b"/],
    ['no header at all', 'Hello,你好\n', /"Hello", "你好".*header: false/],
    ['spaces in the header', ' src,tgt\n1,2\n', /" src" differs from it only in spaces or case/],
    ['another case', 'SRC,tgt\n1,2\n', /"SRC" differs from it only in spaces or case/],
    ['another delimiter', 'src:tgt\na:b\n', /"src:tgt".*delimiter/],
  ])('%s: the error lists those found', async (_, content, message) => {
    expect(await faultOf(content)).toMatch(message);
  });

  test('a name that comes twice is refused, wanted or not', async () => {
    expect(await faultOf('src,tgt,src\n1,2,3\n')).toMatch(
      /"src" more than once.*"src", "tgt", "src"/,
    );
    expect(await faultOf('src,tgt,x,x\n1,2,3,4\n')).toMatch(/"x" more than once/);
  });
});

describe('rows with a wrong number of cells', () => {
  const content = 'src,tgt\na,b\nc,d,e\nf\n\ng,h\n';

  test('are an error with the row and the line', async () => {
    expect(await faultOf(content)).toMatch(/row 2 \(line 3\) has 3 cells instead of 2/);
    expect(await faultOf('src,tgt\n"a\nb",c\nd\n')).toMatch(/row 2 \(line 4\) has 1 cell instead/);
  });

  test('are skipped and listed by option', async () => {
    const { pairs, report } = await read(content, { onMalformed: 'skip' });
    expect(pairs.map(({ src }) => src)).toEqual(['a', 'g']);
    expect(report).toMatchObject({ rows: 5, kept: 2, empty: 1, emptyRows: [4] });
    expect(report.malformed).toEqual([
      { row: 2, line: 3, reason: '3 cells instead of 2' },
      { row: 3, line: 4, reason: '1 cell instead of 2' },
    ]);
    expect(describeReport(report)).toBe(
      'the input: 2 pairs kept of 5 rows; left out: 1 empty (row 4), 2 malformed (rows 2, 3)',
    );
  });

  test('are counted in words that fit one of them', async () => {
    const { report } = await readPairs(chunks('src,tgt\n1,2\n'), columns);
    expect(describeReport(report)).toBe('the input: 1 pair kept of 1 row');
  });

  test('stop the reading at the same row whatever the size of the chunks', async () => {
    const late = `src,tgt\n1,2,3\n${'a,b\n'.repeat(10)}\xff`;
    for (const size of [1, 10, 1000]) {
      expect(await faultOf(Buffer.from(late, 'latin1'), {}, size)).toMatch(/row 1 \(line 2\)/);
    }
  });
});

describe('empty cells', () => {
  test('are left out and counted, white space and blank lines too', async () => {
    const { pairs, report } = await read('src,tgt\na,\n,b\n" \u3000",c\n\nd,e\n\n');
    expect(pairs).toEqual([{ src: 'd', tgt: 'e', row: 5, line: 6 }]);
    expect(report).toMatchObject({ rows: 6, kept: 1, empty: 5, emptyRows: [1, 2, 3, 4, 6] });
  });

  test('in every row are an error', async () => {
    expect(await faultOf('src,tgt\na,\n')).toMatch(/no sentence pair in its 1 row \(/);
  });
});

describe('a file with nothing in it', () => {
  test.each([
    ['no bytes', ''],
    ['only a byte order mark', '\ufeff'],
    ['gzip of nothing', gzipSync('')],
  ])('%s is an error', async (_, content) => {
    expect(await faultOf(content)).toMatch(/the file is empty/);
  });

  test('but a header is an error', async () => {
    expect(await faultOf('src,tgt\n')).toMatch(/a header but no rows/);
  });
});

describe('a file that cannot be read', () => {
  test('names itself and why', async () => {
    const missing = join(folder, 'missing.csv');
    await expect(readPairs(missing, columns)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(/missing\.csv: there is no such file/) as string,
    });
    await expect(readPairs(folder, columns)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(/a folder, not a file/) as string,
    });
  });
});

describe('bytes that are no UTF-8', () => {
  /** A file whose third row has C3 28, an é cut in two. */
  const invalid = Buffer.concat([
    Buffer.from('src,tgt\na,é\nb,"two\nlines"\nc,'),
    Buffer.from([0xc3, 0x28]),
    Buffer.from('\nd,e\n'),
  ]);

  test('are refused with row, line and byte offset', async () => {
    for (const size of [1, 2, 3, 5, 1000]) {
      const message = await faultOf(invalid, {}, size);
      expect(message).toContain(`row 3 (line 5)`);
      expect(message).toContain(`byte offset ${invalid.indexOf(0xc3, 15)}`);
    }
  });

  test('are named at the right row when they begin or end it', async () => {
    const start = Buffer.from('src,tgt\na,b\n\xffc,d\n', 'latin1');
    const end = Buffer.from('src,tgt\na,b\nc,d\xff\n', 'latin1');
    const quoted = Buffer.from('src,tgt\na,b\n"c"\xff,d\n', 'latin1');
    for (const size of [1, 1000]) {
      expect(await faultOf(start, {}, size)).toMatch(/row 2 \(line 3\).*offset 12\)/);
      expect(await faultOf(end, {}, size)).toMatch(/row 2 \(line 3\).*offset 15\)/);
      expect(await faultOf(quoted, {}, size)).toMatch(/row 2 \(line 3\).*offset 15\)/);
    }
    expect(await faultOf(Buffer.from('src,\xff\n', 'latin1'))).toMatch(/the header \(line 1\)/);
  });

  test('count from the start of the file, byte order mark included', async () => {
    const marked = Buffer.concat([Buffer.from('\ufeffsrc,tgt\n'), Buffer.from([0xff])]);
    expect(await faultOf(marked)).toContain('byte offset 11)');
  });

  test('at the end of the file, within a character, are refused', async () => {
    const cut = Buffer.from('src,tgt\na,中').subarray(0, -1);
    expect(await faultOf(cut, {}, 1)).toMatch(
      /row 1 \(line 2\).*within a UTF-8 character.*offset 10\)/,
    );
  });

  test.each([
    ['an overlong slash', [0xc0, 0xaf]],
    ['an overlong form of three', [0xe0, 0x80, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a lone continuation', [0x80]],
    ['a byte of no use', [0xf5]],
    ['a cut sequence of four', [0xf0, 0x9f, 0x98]],
  ])('%s is found at its first byte in chunks of any size', async (_, bytes) => {
    const content = Buffer.concat([
      Buffer.from('src,tgt\n中é😀,'),
      Buffer.from(bytes),
      Buffer.from('x\n'),
    ]);
    for (const size of [1, 2, 3, 4, 100]) {
      expect(await faultOf(content, {}, size)).toContain('byte offset 18)');
    }
  });

  test('become U+FFFD by option', async () => {
    const { pairs } = await read(invalid, { invalidUtf8: 'replace' });
    expect(pairs[2]).toMatchObject({ src: 'c', tgt: '\ufffd(' });
  });

  test('UTF-16 is refused by name', async () => {
    const content = Buffer.from('\ufeff"src","tgt"\n"a","b"\n', 'utf16le');
    expect(await faultOf(content, {}, 1)).toMatch(/UTF-16 text \(little-endian.*iconv/);
    expect(await faultOf(content.swap16())).toMatch(/UTF-16 text \(big-endian/);
    expect(await faultOf(gzipSync(content))).toMatch(/UTF-16 text/);
  });
});

describe('NUL bytes', () => {
  const content = 'src,tgt\na,b\nthr\0ee,four\nc,d\n';

  test('are refused with row and offset', async () => {
    for (const size of [1, 1000]) {
      expect(await faultOf(content, {}, size)).toMatch(/row 2 \(line 3\): a NUL byte.*offset 15\)/);
    }
  });

  test('make a row malformed where such rows are skipped', async () => {
    const { pairs, report } = await read(content, { onMalformed: 'skip' });
    expect(pairs.map(({ src }) => src)).toEqual(['a', 'c']);
    expect(report.malformed).toEqual([{ row: 2, line: 3, reason: 'a NUL byte' }]);
  });
});

describe('quotes', () => {
  test('that are never closed name the row where they open, skipping or not', async () => {
    const content = `src,tgt\na,b\nc,"d\n${'e,f\n'.repeat(1000)}`;
    for (const options of [{}, { onMalformed: 'skip' }] as const) {
      for (const size of [1, 100, 100_000]) {
        expect(await faultOf(content, options, size)).toMatch(
          /row 2 \(line 3\): the quote that opens cell 2 is never closed/,
        );
      }
    }
  });

  test('that are never closed name that row even when later rows have quotes', async () => {
    const content = `src,tgt\na,b\n"c,d\n${'"e","f"\n'.repeat(10)}`;
    expect(await faultOf(content)).toMatch(/row 2 \(line 3\): the quote that opens cell 1/);
  });

  test('followed by text are an error', async () => {
    expect(await faultOf('src,tgt\n"a"b,c\n')).toMatch(/row 1 \(line 2\).*text follows/);
  });

  test('within a cell that has none around it are an error, and text by option', async () => {
    const content = 'src,tgt\nsay "hi",b\n';
    expect(await faultOf(content)).toMatch(/row 1 \(line 2\): cell 1 has a quote within/);
    expect(await pairsOf(content, { quoted: false })).toEqual([['say "hi"', 'b']]);
  });

  test('that hold more than 16 MiB are an error', async () => {
    const line = Buffer.from(`${'x'.repeat(1024 * 1024 - 1)}\n`);
    const content = [Buffer.from('src,tgt\n"a'), ...Array<Buffer>(17).fill(line)];
    await expect(readPairs(content, columns)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(/row 1 \(line 2\).*was a quote never closed/) as string,
    });
  });
});

describe('options of readPairs', () => {
  const anything = chunks('src,tgt\na,b\n');

  test.each<[string, unknown, RegExp]>([
    ['missing', undefined, /options with src and tgt are required.*undefined/],
    ['a number with a header', { src: 1, tgt: 'b' }, /src must be the name.*header: false/],
    ['a name without a header', { src: 'a', tgt: 2, header: false }, /src must be the number/],
    ['column 0', { src: 0, tgt: 1, header: false }, /from 1.*got 0/],
    ['the same column twice', { src: 'a', tgt: 'a' }, /the same column/],
    ['an unknown option', { ...columns, source: 'a' }, /unknown option "source".*onMalformed/],
    ['an unknown format', { ...columns, format: 'xls' }, /format must be "auto" or "csv"/],
    ['a delimiter of two', { ...columns, delimiter: '||' }, /delimiter must be one character/],
    ['a quote as delimiter', { ...columns, delimiter: '"' }, /delimiter must be one character/],
    ['an unknown policy', { ...columns, onMalformed: 'ignore' }, /"error" or "skip"/],
  ])('%s: TypeError', async (_, options, message) => {
    const reading = readPairs(anything, options as ReadPairsOptions);
    await expect(reading).rejects.toThrow(TypeError);
    await expect(reading).rejects.toThrow(message);
  });

  test('a source that is none: TypeError', async () => {
    await expect(readPairs(5 as never, columns)).rejects.toThrow(
      /path, a file: URL or an iterable/,
    );
    await expect(readPairs(['text'] as never, columns)).rejects.toThrow(/Uint8Array chunks/);
  });

  test('a signal stops the reading', async () => {
    const options = { ...columns, signal: AbortSignal.abort() };
    await expect(readPairs(anything, options)).rejects.toMatchObject({ name: 'AbortError' });
  });
});
