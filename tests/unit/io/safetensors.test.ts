import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  memory,
  readSafetensors,
  SafetensorsFile,
  tensor,
  tidy,
  writeSafetensors,
  type Tensor,
} from 'torchformer';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-safetensors-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A file of the format with any header, true or lying. */
function fileOf(header: unknown, dataBytes: number): Buffer {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.byteLength));
  return Buffer.concat([length, json, Buffer.alloc(dataBytes)]);
}

let files = 0;
function written(content: Uint8Array): string {
  const path = join(folder, `${files++}.safetensors`);
  writeFileSync(path, content);
  return path;
}

async function faultOf(
  content: Uint8Array,
): Promise<{ code: string; message: string; path: string }> {
  const path = written(content);
  const error: unknown = await readSafetensors(path).then(
    async (file) => {
      await file.close();
      return null;
    },
    (fault: unknown) => fault,
  );
  expect(error, 'the file must be refused').toBeInstanceOf(Error);
  const { code, message } = error as Error & { code: string };
  expect(code).toBe('ERR_CHECKPOINT');
  expect(message.startsWith(`${path}: `)).toBe(true);
  return { code, message: message.slice(path.length + 2), path };
}

const f32 = (begin: number, end: number, shape: unknown = [(end - begin) / 4]) => ({
  dtype: 'F32',
  shape,
  data_offsets: [begin, end],
});

describe('a header that lies is refused, each lie with its own message', () => {
  const cases: [string, unknown, number, string][] = [
    [
      'a name twice, which JSON.parse would not tell',
      `{"a":${JSON.stringify(f32(0, 4))},"a":${JSON.stringify(f32(4, 8))}}`,
      8,
      'the header has the name "a" twice',
    ],
    [
      'a name twice, once escaped',
      `{"a":${JSON.stringify(f32(0, 4))},"\\u0061":${JSON.stringify(f32(4, 8))}}`,
      8,
      'the header has the name "a" twice',
    ],
    [
      'a key of an entry twice',
      '{"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}',
      4,
      'the name "shape" twice',
    ],
    [
      'overlapping tensors',
      { a: f32(0, 8), b: f32(4, 12) },
      12,
      'tensors "a" and "b" overlap at data offset 4',
    ],
    [
      'a hole',
      { a: f32(0, 4), b: f32(8, 12) },
      12,
      'hole in the data: no tensor covers the offsets 4 to 8',
    ],
    [
      'a hole at the start',
      { a: f32(4, 8) },
      8,
      'hole in the data: no tensor covers the offsets 0 to 4',
    ],
    ['bytes after the last tensor', { a: f32(0, 4) }, 8, '4 bytes after the last tensor'],
    [
      'an end past the file',
      { a: f32(0, 12) },
      8,
      'truncated: the tensors need 12 bytes of data, the file has 8',
    ],
    [
      'a shape that needs more bytes',
      { a: f32(0, 4, [2]) },
      4,
      'F32 of shape [2] takes 8 bytes, but its data_offsets [0,4] hold 4',
    ],
    [
      'a shape whose product overflows',
      { a: f32(0, 4, [2 ** 32, 2 ** 32]) },
      4,
      'overflows: more than 2^53 - 1 bytes',
    ],
    ['negative offsets', { a: f32(-4, 0, [1]) }, 4, 'its data_offsets [-4,0] are negative'],
    ['reversed offsets', { a: f32(4, 0, [1]) }, 4, 'its data_offsets [4,0] are reversed'],
    ['fractional offsets', { a: f32(0, 1.5, [1]) }, 4, 'its data_offsets [0,1.5] must be integers'],
    [
      'offsets beyond 2^53',
      '{"a":{"dtype":"U8","shape":[1],"data_offsets":[9007199254740992,9007199254740993]}}',
      1,
      'exceed 2^53 - 1',
    ],
    [
      'three offsets',
      { a: { dtype: 'F32', shape: [1], data_offsets: [0, 4, 4] } },
      4,
      'must be two numbers, got [0,4,4]',
    ],
    [
      'an unknown dtype',
      { a: { dtype: 'F31', shape: [1], data_offsets: [0, 4] } },
      4,
      'unknown dtype "F31"; known: BOOL',
    ],
    [
      'a dtype named like a method of objects',
      { a: { dtype: 'toString', shape: [1], data_offsets: [0, 4] } },
      4,
      'unknown dtype "toString"',
    ],
    ['a negative length', { a: f32(0, 4, [-1]) }, 4, 'its shape [-1] must hold integers'],
    ['a shape that is no array', { a: f32(0, 4, 1) }, 4, 'its shape must be an array, got 1'],
    ['an entry that is no object', { a: 7 }, 0, 'its entry must be an object, got 7'],
    ['an array as header', [f32(0, 4)], 4, 'the header must be a JSON object, got an array of 1'],
    ['null as header', 'null', 0, 'the header must be a JSON object, got null'],
    ['no JSON', '{"a":', 0, 'the header is not valid JSON'],
    [
      'metadata that is no text',
      { __metadata__: { epoch: 3 } },
      0,
      '__metadata__ "epoch" must be a string, got 3',
    ],
    ['metadata that is no object', { __metadata__: [] }, 0, '__metadata__ must be an object'],
  ];
  test.each(cases)('%s', async (_name, header, dataBytes, message) => {
    expect((await faultOf(fileOf(header, dataBytes))).message).toContain(message);
  });

  test('all messages differ', async () => {
    const messages = new Set<string>();
    for (const [, header, dataBytes] of cases)
      messages.add((await faultOf(fileOf(header, dataBytes))).message);
    // The two spellings of one name twice are the same fault.
    expect(messages.size).toBe(cases.length - 1);
  });

  test('a header that is no UTF-8', async () => {
    const file = fileOf('{"a?":1}', 0);
    file[8 + 3] = 0xff;
    expect((await faultOf(file)).message).toContain('not valid UTF-8');
  });

  test('a file shorter than the header length', async () => {
    expect((await faultOf(Buffer.alloc(5))).message).toContain(
      '5 bytes, but the header length alone takes 8',
    );
  });

  test('a header length beyond the file', async () => {
    const start = Buffer.alloc(8);
    start.writeBigUInt64LE(100n);
    expect((await faultOf(start)).message).toContain('truncated: the header needs 100 bytes');
  });

  test('a header length beyond all reason', async () => {
    expect((await faultOf(Buffer.alloc(16, 0xff))).message).toContain(
      'it claims a header of 18446744073709551615 bytes',
    );
  });

  test('__proto__ as a name is an ordinary name', async () => {
    const path = written(
      fileOf('{"__proto__":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4),
    );
    const file = await readSafetensors(path);
    expect(file.names).toEqual(['__proto__']);
    await file.close();
  });
});

// Made by the reference implementation, safetensors 0.8.0 for Python.
const fromPython =
  'oAIAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJtYWRlIGJ5IjoiUHl0aG9uIn0sImk2NCI6eyJkdHlwZSI6Ikk2NCIsIn' +
  'NoYXBlIjpbMl0sImRhdGFfb2Zmc2V0cyI6WzAsMTZdfSwiZjY0Ijp7ImR0eXBlIjoiRjY0Iiwic2hhcGUiOltdLCJk' +
  'YXRhX29mZnNldHMiOlsxNiwyNF19LCJlbXB0eSI6eyJkdHlwZSI6IkYzMiIsInNoYXBlIjpbMCwzXSwiZGF0YV9vZm' +
  'ZzZXRzIjpbMjQsMjRdfSwiZjMyIjp7ImR0eXBlIjoiRjMyIiwic2hhcGUiOlsyLDNdLCJkYXRhX29mZnNldHMiOlsy' +
  'NCw0OF19LCJpMzIiOnsiZHR5cGUiOiJJMzIiLCJzaGFwZSI6WzJdLCJkYXRhX29mZnNldHMiOls0OCw1Nl19LCJiZj' +
  'E2Ijp7ImR0eXBlIjoiQkYxNiIsInNoYXBlIjpbMl0sImRhdGFfb2Zmc2V0cyI6WzU2LDYwXX0sImYxNiI6eyJkdHlw' +
  'ZSI6IkYxNiIsInNoYXBlIjpbMl0sImRhdGFfb2Zmc2V0cyI6WzYwLDY0XX0sImkxNiI6eyJkdHlwZSI6IkkxNiIsIn' +
  'NoYXBlIjpbMl0sImRhdGFfb2Zmc2V0cyI6WzY0LDY4XX0sImk4Ijp7ImR0eXBlIjoiSTgiLCJzaGFwZSI6WzJdLCJk' +
  'YXRhX29mZnNldHMiOls2OCw3MF19LCJ1OCI6eyJkdHlwZSI6IlU4Iiwic2hhcGUiOlsyXSwiZGF0YV9vZmZzZXRzIj' +
  'pbNzAsNzJdfSwiYiI6eyJkdHlwZSI6IkJPT0wiLCJzaGFwZSI6WzNdLCJkYXRhX29mZnNldHMiOls3Miw3NV19fSAg' +
  'ICAgICABAAAAAAAgAP//////////mpmZmZmZuT8AAAAAAACAPwAAAEAAAEBAAACAQAAAoED+////cBEBAMA/gMMAPg' +
  'DA/v8DAIB/AP8BAAE=';

const expected: Record<
  string,
  { dtype: string; shape: number[]; data: ArrayLike<number | bigint> }
> = {
  b: { dtype: 'bool', shape: [3], data: Uint8Array.of(1, 0, 1) },
  u8: { dtype: 'uint8', shape: [2], data: Uint8Array.of(0, 255) },
  i8: { dtype: 'int8', shape: [2], data: Int8Array.of(-128, 127) },
  i16: { dtype: 'int16', shape: [2], data: Int16Array.of(-2, 3) },
  i32: { dtype: 'int32', shape: [2], data: Int32Array.of(-2, 70000) },
  i64: { dtype: 'int64', shape: [2], data: BigInt64Array.of(9007199254740993n, -1n) },
  f16: { dtype: 'float16', shape: [2], data: Float32Array.of(1.5, -2) },
  bf16: { dtype: 'bfloat16', shape: [2], data: Float32Array.of(1.5, -256) },
  f32: { dtype: 'float32', shape: [2, 3], data: Float32Array.of(0, 1, 2, 3, 4, 5) },
  f64: { dtype: 'float64', shape: [], data: Float64Array.of(0.1) },
  empty: { dtype: 'float32', shape: [0, 3], data: Float32Array.of() },
};

function expectAll(tensors: Map<string, Tensor>): void {
  expect([...tensors.keys()].sort()).toEqual(Object.keys(expected).sort());
  for (const [name, { dtype, shape, data }] of Object.entries(expected)) {
    const read = tensors.get(name) as Tensor;
    expect({ name, dtype: read.dtype, shape: read.shape }).toEqual({ name, dtype, shape });
    expect(read.data()).toEqual(data);
  }
}

describe('reading and writing', () => {
  test('a file of the Python library reads with every dtype, shape and its metadata', async () => {
    const file = await readSafetensors(written(Buffer.from(fromPython, 'base64')));
    expect(file.metadata).toEqual({ 'made by': 'Python' });
    expect(file.info('bf16')).toEqual({ dtype: 'BF16', shape: [2] });
    const tensors = await file.tensors();
    await file.close();
    expectAll(tensors);
    for (const read of tensors.values()) read.dispose();
  });

  test('a file is opened by readSafetensors alone, and onto a device that is one', async () => {
    const make = SafetensorsFile as unknown as new (path?: string) => object;
    expect(() => new make()).toThrow(TypeError);
    expect(() => new make('a')).toThrow(
      /constructor is private; use await readSafetensors\(path\)/,
    );
    const file = await readSafetensors(written(Buffer.from(fromPython, 'base64')));
    for (const device of [null, 'tpu']) {
      const wrong = { device: device as 'cpu' };
      await expect(file.tensor('bf16', wrong)).rejects.toThrow(
        /device must be 'auto', 'cpu', 'cuda' or/,
      );
    }
    await file.close();
  });

  test('what is written reads back equal, and the data is aligned to 8 bytes', async () => {
    const source = await readSafetensors(written(Buffer.from(fromPython, 'base64')));
    const tensors = await source.tensors();
    await source.close();
    const path = join(folder, 'copy.safetensors');
    await writeSafetensors(path, tensors, { 'made by': 'a test', note: 'ä "quoted" 汉' });
    const bytes = readFileSync(path);
    expect(Number(bytes.readBigUInt64LE(0)) % 8).toBe(0);
    const copy = await readSafetensors(path);
    expect(copy.metadata).toEqual({ 'made by': 'a test', note: 'ä "quoted" 汉' });
    const again = await copy.tensors();
    await copy.close();
    expectAll(again);
    for (const read of [...tensors.values(), ...again.values()]) read.dispose();
  });

  test('a transposed tensor is written in row-major order', async () => {
    const path = join(folder, 'strided.safetensors');
    const matrix = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const transposed = matrix.t();
    await writeSafetensors(path, { transposed });
    const file = await readSafetensors(path);
    const read = await file.tensor('transposed');
    expect(read.toArray()).toEqual([
      [1, 4],
      [2, 5],
      [3, 6],
    ]);
    await file.close();
    for (const used of [matrix, transposed, read]) used.dispose();
  });

  test('reading and writing leave no tensor behind but the results', async () => {
    const path = join(folder, 'counted.safetensors');
    const value = tensor([1, 2, 3]);
    const before = memory().tensors;
    await writeSafetensors(path, { value });
    expect(memory().tensors).toBe(before);
    const file = await readSafetensors(path);
    const read = await file.tensor('value');
    expect(memory().tensors).toBe(before + 1);
    read.dispose();
    value.dispose();
    await file.close();
  });

  test('an entry whose dtype tensors cannot have opens; reading it is an error that names it', async () => {
    const path = written(
      fileOf({ a: { dtype: 'U32', shape: [1], data_offsets: [0, 4] }, b: f32(4, 8) }, 8),
    );
    const file = await readSafetensors(path);
    const b = await file.tensor('b');
    expect(b.shape).toEqual([1]);
    b.dispose();
    await expect(file.tensor('a')).rejects.toThrow('tensor "a" has dtype U32');
    await file.close();
  });

  test('a bool byte other than 0 and 1 reads as true', async () => {
    const content = fileOf({ flags: { dtype: 'BOOL', shape: [2], data_offsets: [0, 2] } }, 2);
    content[content.length - 1] = 7;
    const file = await readSafetensors(written(content));
    const flags = await file.tensor('flags');
    expect(flags.data()).toEqual(Uint8Array.of(0, 1));
    flags.dispose();
    await file.close();
  });

  test('an unknown name is an error that lists names', async () => {
    const file = await readSafetensors(written(fileOf({ a: f32(0, 4) }, 4)));
    await expect(file.tensor('b')).rejects.toThrow('no tensor named "b"; it has 1: a');
    await file.close();
  });

  test('every truncation of a file is refused', async () => {
    const whole = Buffer.from(fromPython, 'base64');
    for (let length = 0; length < whole.length; length += 16) {
      const { message } = await faultOf(whole.subarray(0, length));
      expect(message).toMatch(/truncated|not a safetensors file/);
    }
  });

  test('a file that shrinks after it was opened is an error, not zeros', async () => {
    const path = written(fileOf({ a: f32(0, 400) }, 400));
    const file = await readSafetensors(path);
    truncateSync(path, statSync(path).size - 100);
    await expect(file.tensor('a')).rejects.toThrow('truncated while it was read');
    await file.close();
  });

  test('missing file and folder', async () => {
    const missing = join(folder, 'none.safetensors');
    await expect(readSafetensors(missing)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: `${missing}: no such file`,
    });
    await expect(readSafetensors(folder)).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
  });

  test('a closed file names itself, after the reads that were on their way', async () => {
    const path = written(fileOf({ a: f32(0, 400) }, 400));
    const file = await readSafetensors(path);
    const reading = file.tensor('a');
    await Promise.all([file.close(), file.close()]);
    const a = await reading;
    expect(a.shape).toEqual([100]);
    a.dispose();
    await expect(file.tensor('a')).rejects.toMatchObject({
      code: 'ERR_DISPOSED',
      message: `${path}: the file has been closed; open it again with readSafetensors(path)`,
    });
  });

  test('a header that no reader accepts is refused before anything is written', async () => {
    const value = tensor([1]);
    const path = join(folder, 'large.safetensors');
    // Length of everything around the text, so that the header has exactly the limit's bytes.
    await writeSafetensors(path, { value }, { text: '' });
    const around = readFileSync(path).subarray(8, -4).toString().trimEnd().length;
    const most = 100_000_000 - around;
    await writeSafetensors(path, { value }, { text: 'x'.repeat(most) });
    expect(readFileSync(path).readBigUInt64LE(0)).toBe(100_000_000n);
    const file = await readSafetensors(path);
    expect(file.metadata['text']?.length).toBe(most);
    await file.close();
    const before = readFileSync(path);
    const writing = writeSafetensors(path, { value }, { text: 'x'.repeat(most + 1) });
    await expect(writing).rejects.toThrow(RangeError);
    await expect(writing).rejects.toThrow(
      "names and metadata need a header of 100000008 bytes, the format's limit is 100000000",
    );
    expect(readFileSync(path).equals(before)).toBe(true);
    rmSync(path);
    value.dispose();
  });

  test('names and metadata that the format cannot hold are refused', async () => {
    const value = tensor([1]);
    const path = join(folder, 'refused.safetensors');
    await expect(writeSafetensors(path, { __metadata__: value })).rejects.toThrow(/reserved/);
    await expect(writeSafetensors(path, { 'a\ud800': value })).rejects.toThrow(/Unicode/);
    for (const metadata of [{ note: 'a\ud800' }, { 'a\ud800': 'note' }]) {
      await expect(writeSafetensors(path, { value }, metadata)).rejects.toThrow(
        /metadata ".*" is not valid Unicode text/,
      );
    }
    await expect(
      writeSafetensors(path, { value }, { epoch: 3 } as unknown as Record<string, string>),
    ).rejects.toThrow('metadata "epoch" must be a string, got 3');
    value.dispose();
    expect(readdirSync(folder)).not.toContain('refused.safetensors');
  });

  test.each<[string, unknown, unknown, unknown, string]>([
    ['no path', undefined, {}, {}, 'path must be a path, got undefined'],
    ['no tensors', 'ok', undefined, {}, 'tensors must be a Map or an object of Tensors by name'],
    ['a list', 'ok', [], {}, 'tensors must be a Map or an object of Tensors by name, got an array'],
    ['a number in it', 'ok', { a: 5 }, {}, 'tensors "a" must be a Tensor, got 5'],
    ['metadata null', 'ok', {}, null, 'metadata must be an object of strings, got null'],
  ])('%s to write is refused', async (_, path, tensors, metadata, message) => {
    const target = path === 'ok' ? join(folder, 'refused.safetensors') : path;
    const writing = writeSafetensors(target as never, tensors as never, metadata as never);
    await expect(writing).rejects.toThrow(TypeError);
    await expect(writing).rejects.toThrow(`writeSafetensors: ${message}`);
    expect(readdirSync(folder)).not.toContain('refused.safetensors');
  });

  test('what is no path is refused', async () => {
    await expect(readSafetensors(null as never)).rejects.toThrow(
      'readSafetensors: path must be a path, got null',
    );
  });
});

describe('files over 2 GiB', () => {
  test('one tensor behind 2.4 GB is read alone, without the memory of the rest', async () => {
    const path = join(folder, 'large.safetensors');
    const x = 600_000_000 * 4;
    const head = fileOf({ x: f32(0, x), y: f32(x, x + 4) }, 0);
    const handle = openSync(path, 'w');
    writeSync(handle, head);
    writeSync(handle, Buffer.from(Float32Array.of(7.5).buffer), 0, 4, head.byteLength + x);
    closeSync(handle);

    const before = process.memoryUsage().rss;
    const file = await readSafetensors(path);
    const y = await file.tensor('y');
    expect(y.toArray()).toEqual([7.5]);
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
    y.dispose();
    await file.close();
    rmSync(path);
  });
});

describe('a save replaces the target only when it is complete', () => {
  const save = async (path: string, value: number) => {
    const t = tensor([value]);
    try {
      await writeSafetensors(path, { t });
    } finally {
      t.dispose();
    }
  };
  const load = async (path: string) => {
    const file = await readSafetensors(path);
    const t = await file.tensor('t');
    await file.close();
    return tidy(() => {
      const value = t.item();
      t.dispose();
      return value;
    });
  };

  test('the mode of the old file is kept', async () => {
    const path = join(folder, 'mode.safetensors');
    await save(path, 1);
    chmodSync(path, 0o640);
    await save(path, 2);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(await load(path)).toBe(2);
  });

  test('a symbolic link stays a link and its target is replaced', async () => {
    const target = join(folder, 'target.safetensors');
    const link = join(folder, 'link.safetensors');
    symlinkSync(target, link);
    await save(link, 1);
    await save(link, 2);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(lstatSync(target).isFile()).toBe(true);
    expect(await load(target)).toBe(2);
  });

  test('temporaries of dead processes are removed at the next save, those of live ones stay', async () => {
    const path = join(folder, 'stale.safetensors');
    const dead = Number(
      execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }),
    );
    const stale = `.stale.safetensors.${dead}-0-0.tmp`;
    const alive = `.stale.safetensors.${process.ppid}-0-0.tmp`;
    const other = `.stale.safetensors.notes.tmp`;
    for (const name of [stale, alive, other]) writeFileSync(join(folder, name), 'x');
    await save(path, 1);
    const names = readdirSync(folder);
    expect(names).not.toContain(stale);
    expect(names).toContain(alive);
    expect(names).toContain(other);
  });

  test('a folder that does not exist is a clear error', async () => {
    await expect(save(join(folder, 'no', 'such', 'a.safetensors'), 1)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining('the folder does not exist') as string,
    });
  });
});
