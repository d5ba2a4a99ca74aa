import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  batches,
  encodePairs,
  makeBatch,
  memory,
  SeededRandom,
  Tokenizer,
  trainCharacters,
  TranslationDataset,
  type Batch,
  type BatchOptions,
  type TokenPair,
} from 'torchformer';

const specialIds = { pad: 0, bos: 1, eos: 2 };

/** Pairs of made-up ids; row r has a source of `lengths[r - 1]` tokens. */
function datasetOf(lengths: readonly number[]): TranslationDataset {
  const pairs = lengths.map((length, index): TokenPair => {
    const inner = Array<number>(length).fill(3 + index);
    return { src: [1, ...inner, 2], tgt: [1, ...inner, 3, 2], row: index + 1 };
  });
  return new TranslationDataset(pairs, { specialIds, vocabSize: 1000 });
}

/** The rows of each batch, and its shapes, with all tensors freed. */
function rowsOf(dataset: TranslationDataset, options?: BatchOptions): number[][] {
  return rowsIn(batches(dataset, options));
}

function rowsIn(all: Iterable<Batch>): number[][] {
  return Array.from(all, (batch) => {
    batch.dispose();
    return [...batch.rows];
  });
}

describe('a batch', () => {
  const pairs: TokenPair[] = [
    { src: [1, 7, 8, 2], tgt: [1, 5, 6, 2], row: 10 },
    { src: [1, 9, 2], tgt: [1, 4, 2], row: 20 },
  ];

  test('has the tensors of seed 001', () => {
    const batch = makeBatch(pairs, 0);
    expect(batch.src.toArray()).toEqual([
      [1, 7, 8, 2],
      [1, 9, 2, 0],
    ]);
    expect(batch.tgt.toArray()).toEqual([
      [1, 5, 6],
      [1, 4, 0],
    ]);
    expect(batch.tgtY.toArray()).toEqual([
      [5, 6, 2],
      [4, 2, 0],
    ]);
    expect([batch.src, batch.tgt, batch.tgtY].map(({ dtype }) => dtype)).toEqual(
      Array(3).fill('int64'),
    );
    expect(batch.ntokens).toBe(5);
    expect(batch.rows).toEqual([10, 20]);
    batch.dispose();
  });

  test('has masks that are true where attention may go', () => {
    const batch = makeBatch(pairs, 0);
    expect([batch.srcMask.dtype, batch.tgtMask.dtype]).toEqual(['bool', 'bool']);
    expect([batch.srcMask.shape, batch.tgtMask.shape]).toEqual([
      [2, 1, 4],
      [2, 3, 3],
    ]);
    expect([...batch.srcMask.data()]).toEqual([1, 1, 1, 1, 1, 1, 1, 0]);
    const full = [1, 0, 0, 1, 1, 0, 1, 1, 1];
    const short = [1, 0, 0, 1, 1, 0, 1, 1, 0];
    expect([...batch.tgtMask.data()]).toEqual([...full, ...short]);
    batch.dispose();
  });

  test('may have any pad id', () => {
    const batch = makeBatch(pairs, 99);
    expect([...batch.src.data()].map(Number)).toEqual([1, 7, 8, 2, 1, 9, 2, 99]);
    expect([...batch.srcMask.data()]).toEqual([1, 1, 1, 1, 1, 1, 1, 0]);
    expect(batch.ntokens).toBe(5);
    batch.dispose();
  });

  test('with nothing but padding to predict has no tokens', () => {
    const batch = makeBatch([{ src: [1, 2], tgt: [0, 0, 0], row: 1 }], 0);
    expect(batch.ntokens).toBe(0);
    batch.dispose();
  });

  test('keeps ids beyond 2^24 exact', () => {
    const batch = makeBatch([{ src: [16_777_217], tgt: [1, 2], row: 1 }], 0);
    expect([...batch.src.data()].map(Number)).toEqual([16_777_217]);
    batch.dispose();
  });

  test('frees its tensors', () => {
    const before = memory().tensors;
    const batch = makeBatch(pairs, 0);
    expect(memory().tensors).toBe(before + 5 + 7); // padded, and packed with two pairs of boundaries
    batch.dispose();
    batch[Symbol.dispose]();
    expect(memory().tensors).toBe(before);
  });

  test('names the pair, the side and the place of what is not an id', () => {
    const make = (src: number[], tgt: number[]) => () =>
      makeBatch(
        [
          { src: [1, 2], tgt: [1, 2], row: 1 },
          { src, tgt, row: 2 },
        ],
        0,
      );
    expect(make([1, 4, -7, 2], [1, 2])).toThrow(
      new RangeError('makeBatch: pairs[1].src[2] must be an integer at least 0, got -7'),
    );
    expect(make([1, 2], [1, 1.5, 2])).toThrow(/pairs\[1\]\.tgt\[1\] must be .*, got 1\.5/);
    expect(make([1, 2], [1, 5, -2])).toThrow(/pairs\[1\]\.tgt\[2\] must be .*, got -2/);
  });

  test('needs pairs, and targets to predict', () => {
    expect(() => makeBatch([], 0)).toThrow(RangeError);
    expect(() => makeBatch([{ src: [1], tgt: [1], row: 7 }], 0)).toThrow(/row 7 has nothing/);
  });
});

describe('batches', () => {
  const dataset = datasetOf(Array.from({ length: 103 }, (_, index) => 1 + ((index * 37) % 20)));
  const allRows = dataset.pairs.map(({ row }) => row);

  test('come in order, the last one smaller, 50 pairs each by default', () => {
    expect(rowsOf(dataset).map((rows) => rows.length)).toEqual([50, 50, 3]);
    expect(rowsOf(dataset).flat()).toEqual(allRows);
    expect(batches(dataset).length).toBe(3);
    expect(batches(dataset, { batchSize: 103 }).length).toBe(1);
  });

  test('are padded to their own longest sequence, not to that of the data', () => {
    const shapes = Array.from(batches(datasetOf([1, 2, 9]), { batchSize: 2 }), (batch) => {
      const both = [batch.src.shape, batch.tgt.shape];
      batch.dispose();
      return both;
    });
    expect(shapes).toEqual([
      [
        [2, 4],
        [2, 4],
      ],
      [
        [1, 11],
        [1, 11],
      ],
    ]);
  });

  test('are shuffled the same way for the same seed and epoch, and otherwise another', () => {
    const order = (seed: number, epoch: number) =>
      rowsOf(dataset, { shuffle: true, seed, epoch }).flat();
    expect(order(1, 0)).toEqual(order(1, 0));
    expect(order(1, 1)).not.toEqual(order(1, 0));
    expect(order(2, 0)).not.toEqual(order(1, 0));
    expect(order(1, 0)).not.toEqual(allRows);
    expect(order(1, 0).sort((a, b) => a - b)).toEqual(allRows);
  });

  test.each([false, true])(
    'in buckets have every pair once and little padding (shuffle: %s)',
    (shuffle) => {
      const options = { batchSize: 10, bucket: true, shuffle, seed: 3 };
      const grouped = rowsOf(dataset, options);
      expect(grouped).toEqual(rowsOf(dataset, options));
      expect(grouped.flat().sort((a, b) => a - b)).toEqual(allRows);
      const padding = (groups: number[][]) =>
        groups.reduce((sum, rows) => {
          const lengths = rows.map((row) => dataset.pairs[row - 1]?.src.length ?? 0);
          return sum + Math.max(...lengths) * lengths.length - lengths.reduce((a, b) => a + b, 0);
        }, 0);
      expect(padding(grouped)).toBeLessThan(padding(rowsOf(dataset, { batchSize: 10 })) / 5);
      expect(new Set(grouped.map((rows) => rows.length))).toEqual(new Set([10, 3]));
    },
  );

  test('in buckets of a few batches sort within these only', () => {
    const lengths = [4, 3, 2, 1, 9, 8, 7, 6];
    expect(rowsOf(datasetOf(lengths), { batchSize: 2, bucket: 2 })).toEqual([
      [4, 3],
      [2, 1],
      [8, 7],
      [6, 5],
    ]);
  });

  test('can be looped over again, and leave no tensor behind', () => {
    const before = memory().tensors;
    for (const options of [{}, { bucket: true }, { tokens: 90 }]) {
      const all = batches(dataset, options);
      expect(rowsIn(all)).toEqual(rowsIn(all));
    }
    expect(memory().tensors).toBe(before);
  });

  test.each<[string, BatchOptions]>([
    ['batches of a size', { batchSize: 10 }],
    ['buckets', { batchSize: 10, bucket: 3 }],
    ['batches of a number of tokens', { tokens: 60 }],
    ['buckets of a number of tokens', { tokens: 60, bucket: true }],
  ])('shuffled %s have a new order in each loop, decided by the seed', (_, options) => {
    const shuffled = (more: BatchOptions = {}) =>
      batches(dataset, { ...options, shuffle: true, seed: 5, ...more });
    const all = shuffled();
    const loops = [rowsIn(all), rowsIn(all), rowsIn(all)];
    expect(new Set(loops.map((rows) => rows.join())).size).toBe(3);
    for (const rows of loops) {
      expect(rows.flat().sort((a, b) => a - b)).toEqual(allRows);
    }
    const [again, later] = [shuffled(), shuffled({ epoch: 1 })];
    expect([rowsIn(again), rowsIn(again), rowsIn(again)]).toEqual(loops);
    expect([rowsIn(later), rowsIn(later)]).toEqual(loops.slice(1));
  });

  test('shuffled by tokens have the length of the pass that began last', () => {
    const all = batches(dataset, { tokens: 60, shuffle: true });
    const lengths = [0, 1, 2, 3].map((epoch) => [
      all.length,
      rowsOf(dataset, { tokens: 60, shuffle: true, epoch }).length,
      rowsIn(all).length,
    ]);
    expect(new Set(lengths.map(([, expected]) => expected)).size).toBeGreaterThan(1);
    lengths.forEach(([before, expected, count], pass) => {
      expect(count).toBe(expected);
      expect(before).toBe(lengths[Math.max(0, pass - 1)]?.[1]);
    });
    for (const batch of all) {
      batch.dispose();
      expect(all.length).toBe(rowsOf(dataset, { tokens: 60, shuffle: true, epoch: 4 }).length);
      break;
    }
  });

  test.each<[string, object, RegExp]>([
    ['a batch of 0', { batchSize: 0 }, /batchSize must be an integer at least 1/],
    ['a negative seed', { seed: -1 }, /seed must be an integer at least 0/],
    ['a fractional epoch', { epoch: 0.5 }, /epoch must be an integer/],
    ['shuffle as a number', { shuffle: 1 }, /shuffle must be true or false/],
    ['an unknown option', { size: 3 }, /unknown option "size".*batchSize/],
  ])('%s: refused', (_, options, message) => {
    expect(() => batches(dataset, options)).toThrow(message);
  });
});

describe('a dataset', () => {
  const texts = ['ab', 'abc', 'abcdefgh', '', 'a<eos>'];
  const pairs = texts.map((text) => ({ src: text, tgt: text.toUpperCase() }));
  const tokenizerOf = async () =>
    Tokenizer.fromJson(await trainCharacters(['abcdefghABCDEFGHOS<>']));

  test('has bos and eos around both sides', async () => {
    const tokenizer = await tokenizerOf();
    const dataset = await TranslationDataset.fromPairs(pairs.slice(0, 1), {
      tokenizer,
      specialIds,
    });
    const [a, b, upperA, upperB] = ['a', 'b', 'A', 'B'].map((letter) => tokenizer.idOf(letter));
    expect([...dataset]).toEqual([{ src: [1, a, b, 2], tgt: [1, upperA, upperB, 2], row: 1 }]);
  });

  test('reports pairs that are empty, too long or spell a special token', async () => {
    const tokenizer = await tokenizerOf();
    const options = { tokenizer, specialIds, maxLength: 9 };
    const dataset = await TranslationDataset.fromPairs(pairs, options);
    expect(dataset.pairs.map(({ row }) => row)).toEqual([1, 2]);
    expect(dataset.report).toMatchObject({
      rows: 5,
      kept: 2,
      empty: 1,
      emptyRows: [4],
      tooLong: 1,
      tooLongRows: [3],
      reserved: 1,
      reservedRows: [5],
    });
    expect((await TranslationDataset.fromPairs(pairs, { ...options, maxLength: 10 })).length).toBe(
      3,
    );
  });

  test('comes from a file with one report for reading and encoding', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'torchformer-dataset-'));
    const path = join(folder, 'pairs.csv.gz');
    writeFileSync(path, gzipSync('en,zh\nab,AB\nab\nabcdefgh,A\n,A\nb,B\n'));
    const dataset = await TranslationDataset.fromFile(path, {
      src: 'en',
      tgt: 'zh',
      onMalformed: 'skip',
      tokenizer: await tokenizerOf(),
      specialIds,
      maxLength: 5,
    });
    rmSync(folder, { recursive: true });
    expect(dataset.pairs.map(({ row }) => row)).toEqual([1, 5]);
    expect(dataset.report).toMatchObject({ rows: 5, kept: 2, empty: 1, tooLong: 1 });
    expect(dataset.report.malformed).toEqual([{ row: 2, line: 3, reason: '1 cell instead of 2' }]);
  });

  test('without a pair left is an error that says why', async () => {
    const options = { tokenizer: await tokenizerOf(), specialIds, maxLength: 3 };
    await expect(encodePairs(pairs, options)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(/no pair is left.*1 empty \(row 4\), 3 too long/) as string,
    });
  });

  test('refuses special ids that the tokenizer has not or that are the same', async () => {
    const tokenizer = await tokenizerOf();
    const make = (ids: object) =>
      TranslationDataset.fromPairs(pairs, { tokenizer, specialIds: { ...specialIds, ...ids } });
    await expect(make({ pad: 2 })).rejects.toThrow(/pad and eos are both 2/);
    await expect(make({ pad: 5000 })).rejects.toThrow(/pad must be an id from 0 to/);
  });

  test('refuses ids outside the vocabulary before they reach a model', () => {
    const make = (src: number[], tgt: number[]) =>
      new TranslationDataset([{ src, tgt, row: 1 }], { specialIds, vocabSize: 10 });
    expect(() => make([1, 10, 2], [1, 2])).toThrow(
      /pairs\[0\]\.src has the id 10; ids range from 0 to 9/,
    );
    expect(() => make([1, 2], [1, -1, 2])).toThrow(
      /pairs\[0\]\.tgt has the id -1; .* \(at position 1, row 1\)/,
    );
    expect(() => make([], [1, 2])).toThrow(/pairs\[0\]\.src must have at least one id/);
    expect(() => make([1], [1])).toThrow(/pairs\[0\]\.tgt must have at least 2 ids/);
  });
});

describe('SeededRandom', () => {
  test('gives the same numbers everywhere', () => {
    const random = new SeededRandom(42, 1);
    expect(Array.from({ length: 4 }, () => random.next())).toEqual([
      619_879_152, 401_586_933, 25_329_021, 1_797_402_907,
    ]);
  });

  test('is uniform below a limit', () => {
    const random = new SeededRandom(1);
    const counts = Array<number>(6).fill(0);
    for (let draw = 0; draw < 60_000; draw++) counts[random.below(6)]!++;
    // 4.5 standard deviations.
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(411);
  });

  test('shuffles into every order alike', () => {
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 12_000; seed++) {
      const order = new SeededRandom(seed).shuffle([1, 2, 3]).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect(counts.size).toBe(6);
    for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(184);
  });

  test('differs for seeds beyond 32 bits and for streams', () => {
    const first = (seed: number, stream?: number) => new SeededRandom(seed, stream).next();
    const values = [first(1), first(2 ** 32 + 1), first(1, 1), first(2), first(1, 2 ** 32)];
    expect(new Set(values).size).toBe(values.length);
  });

  test('refuses seeds that are no integers', () => {
    expect(() => new SeededRandom(0.5)).toThrow(RangeError);
    expect(() => new SeededRandom('1' as never)).toThrow(TypeError);
  });
});
