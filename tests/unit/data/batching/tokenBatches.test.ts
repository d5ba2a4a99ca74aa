import { describe, expect, test } from 'vitest';
import {
  batches,
  memory,
  SeededRandom,
  TranslationDataset,
  type BatchOptions,
  type TokenPair,
} from 'torchformer';

const specialIds = { pad: 0, bos: 1, eos: 2 };

/** Row r has `sizes[r - 1]`: ids in the source, and ids to predict in the target. */
function datasetOf(sizes: readonly (readonly [number, number])[]): TranslationDataset {
  const pairs = sizes.map(([source, target], index): TokenPair => {
    const ids = (count: number) => Array<number>(count).fill(3);
    return { src: ids(source), tgt: [1, ...ids(target)], row: index + 1 };
  });
  return new TranslationDataset(pairs, { specialIds, vocabSize: 10 });
}

/** With sources as long as the targets. */
const datasetOfLengths = (lengths: readonly number[]) =>
  datasetOf(lengths.map((length) => [length, length]));

interface BatchSize {
  readonly rows: readonly number[];
  readonly sources: number;
  readonly targets: number;
}

/** All batches with their tokens, which the masks tell; all tensors freed. */
function sizesOf(dataset: TranslationDataset, options: BatchOptions): BatchSize[] {
  return Array.from(batches(dataset, options), (batch) => {
    const sources = [...batch.srcMask.data()].filter(Boolean).length;
    batch.dispose();
    return { rows: batch.rows, sources, targets: batch.ntokens };
  });
}

const rowsOf = (dataset: TranslationDataset, options: BatchOptions) =>
  sizesOf(dataset, options).map(({ rows }) => rows);

describe('batches of so many tokens', () => {
  test('take the next pairs until one more would not fit', () => {
    const dataset = datasetOfLengths([4, 3, 3, 5, 5, 1, 9]);
    expect(rowsOf(dataset, { tokens: 10 })).toEqual([
      [1, 2, 3],
      [4, 5],
      [6, 7],
    ]);
    expect(rowsOf(dataset, { tokens: 9 })).toEqual([[1, 2], [3, 4], [5, 6], [7]]);
    expect(rowsOf(dataset, { tokens: 1000 })).toEqual([[1, 2, 3, 4, 5, 6, 7]]);
    expect(batches(dataset, { tokens: 9 }).length).toBe(4);
  });

  test('count sources with bos and eos, and what is predicted of targets', () => {
    const pair = { src: [1, 5, 6, 2], tgt: [1, 7, 2], row: 1 };
    const dataset = new TranslationDataset([pair, pair], { specialIds, vocabSize: 10 });
    expect(sizesOf(dataset, { tokens: 8 })).toEqual([{ rows: [1, 1], sources: 8, targets: 4 }]);
    expect(batches(dataset, { tokens: 7 }).length).toBe(2);
  });

  test('are full when either side is', () => {
    const dataset = datasetOf([
      [8, 1],
      [2, 1],
      [1, 1],
      [1, 9],
      [8, 1],
    ]);
    expect(rowsOf(dataset, { tokens: 10 })).toEqual([[1, 2], [3, 4], [5]]);
  });

  test('have a pair beyond the budget alone, wherever it is', () => {
    expect(rowsOf(datasetOfLengths([1, 1, 20, 1, 1]), { tokens: 4 })).toEqual([
      [1, 2],
      [3],
      [4, 5],
    ]);
    expect(rowsOf(datasetOfLengths([20, 1, 20]), { tokens: 4 })).toEqual([[1], [2], [3]]);
    expect(rowsOf(datasetOfLengths([3, 2, 1]), { tokens: 1 })).toEqual([[1], [2], [3]]);
    expect(
      rowsOf(
        datasetOf([
          [1, 1],
          [1, 20],
          [20, 1],
          [1, 1],
        ]),
        { tokens: 4 },
      ),
    ).toHaveLength(4);
  });

  test('in buckets are cut anew from sorted pairs, and reach over no pool', () => {
    // Unsorted [1, 2], [3, 4, 5], [6], [7, 8]; two of these make a pool.
    const dataset = datasetOfLengths([6, 2, 1, 6, 1, 9, 5, 5]);
    expect(rowsOf(dataset, { tokens: 10, bucket: 2 })).toEqual([[3, 5, 2, 1], [4], [7, 8], [6]]);
    expect(rowsOf(dataset, { tokens: 10, bucket: true })).toEqual([
      [3, 5, 2, 7],
      [8],
      [1],
      [4],
      [6],
    ]);
  });

  test('may come from a dataset without pairs', () => {
    const empty = new TranslationDataset([], { specialIds, vocabSize: 10 });
    expect(batches(empty, { tokens: 5, bucket: true, shuffle: true }).length).toBe(0);
  });

  const random = new SeededRandom(8);
  const cases = Array.from({ length: 60 }, (_, seed): [string, number, number, BatchOptions] => {
    const pairs = 1 + random.below(150);
    const options = {
      tokens: 1 + random.below(80),
      shuffle: random.below(2) === 1,
      bucket: [false, true, 1, 3][random.below(4)] as boolean | number,
      seed,
      epoch: random.below(3),
    };
    return [`${pairs} pairs, ${JSON.stringify(options)}`, pairs, options.tokens, options];
  });
  test.each(cases)(
    '%s: each pair once, none above budget, one order',
    (_, count, tokens, options) => {
      const side = () => 1 + random.below(30);
      const dataset = datasetOf(Array.from({ length: count }, () => [side(), side()]));
      const before = memory().tensors;
      const sizes = sizesOf(dataset, options);
      expect(memory().tensors).toBe(before);
      expect(sizes.flatMap(({ rows }) => rows).sort((a, b) => a - b)).toEqual(
        dataset.pairs.map(({ row }) => row),
      );
      for (const { rows, sources, targets } of sizes) {
        if (rows.length > 1) expect(Math.max(sources, targets)).toBeLessThanOrEqual(tokens);
      }
      expect(batches(dataset, options).length).toBe(sizes.length);
      expect(sizesOf(dataset, options)).toEqual(sizes);
    },
  );

  test('waste nothing: without buckets, two neighbours never fit in one', () => {
    const dataset = datasetOfLengths(Array.from({ length: 500 }, () => 1 + random.below(30)));
    const sizes = sizesOf(dataset, { tokens: 200, shuffle: true });
    sizes.slice(1).forEach(({ targets }, index) => {
      expect(targets + (sizes[index] as BatchSize).targets).toBeGreaterThan(200);
    });
    const mean = sizes.reduce((sum, { targets }) => sum + targets, 0) / sizes.length;
    expect(mean).toBeGreaterThan(180);
  });

  test('have another order for another seed or epoch, and more even lengths in buckets', () => {
    const dataset = datasetOfLengths(Array.from({ length: 500 }, () => 1 + random.below(30)));
    const options = { tokens: 200, shuffle: true, bucket: 10 };
    const first = rowsOf(dataset, { ...options, seed: 1, epoch: 1 });
    expect(rowsOf(dataset, { ...options, seed: 2, epoch: 1 })).not.toEqual(first);
    expect(rowsOf(dataset, { ...options, seed: 1, epoch: 2 })).not.toEqual(first);
    const padding = (groups: readonly (readonly number[])[]) =>
      groups.reduce((sum, rows) => {
        const lengths = rows.map((row) => dataset.pairs[row - 1]?.src.length ?? 0);
        return sum + Math.max(...lengths) * lengths.length - lengths.reduce((a, b) => a + b, 0);
      }, 0);
    expect(padding(first)).toBeLessThan(
      padding(rowsOf(dataset, { ...options, bucket: false })) / 4,
    );
  });

  test.each<[string, object, string]>([
    ['0', { tokens: 0 }, 'batches: tokens must be an integer at least 1, got 0'],
    ['a fraction', { tokens: 1.5 }, 'batches: tokens must be an integer at least 1, got 1.5'],
    ['a text', { tokens: '9' }, 'batches: tokens must be an integer, got the string "9"'],
    ['null', { tokens: null }, 'batches: tokens must be an integer, got null'],
    [
      'batchSize too',
      { tokens: 9, batchSize: 50 },
      'batches: batchSize and tokens are mutually exclusive, got 50 and 9',
    ],
  ])('refuse %s', (_, options, message) => {
    expect(() => batches(datasetOfLengths([1]), options)).toThrow(message);
  });

  test('take a batchSize of undefined for one left out', () => {
    const options = { tokens: 1, batchSize: undefined };
    expect(batches(datasetOfLengths([1, 1]), options).length).toBe(2);
  });
});
