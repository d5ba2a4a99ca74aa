/** Suite train on length buckets: how batches are cut, its options, and its figures. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { gatherEpochs, printEpochs } from '../../../bench/buckets/epochReport.js';
import { cutBuckets, longerSide } from '../../../bench/buckets/cutBuckets.js';
import type { BucketResult } from '../../../bench/buckets/bucketJob.js';
import type { PreparedBuckets } from '../../../bench/buckets/bucketPrepare.js';
import { parseOptions } from '../../../bench/options.js';
import type { IdPair } from '../../../bench/trainJob.js';
import { gatherTiming } from '../../../bench/trainReport.js';
import { participants, type Turn } from '../../../bench/turns.js';

/** A pair whose sides have `source` and, without the first id, `target` tokens. */
function pair(source: number, target: number): IdPair {
  return {
    src: Array.from({ length: source }, () => 5),
    tgt: Array.from({ length: target + 1 }, () => 6),
  };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('length buckets', () => {
  it('hold every pair once, in batches that with their padding have no more than the tokens', () => {
    const pairs = Array.from({ length: 100 }, (_, index) =>
      pair(2 + ((index * 7) % 13), 1 + ((index * 5) % 11)),
    );
    const batches = cutBuckets(pairs, 60);
    expect(new Set(batches.flat())).toEqual(new Set(pairs));
    expect(batches.flat()).toHaveLength(100);
    for (const batch of batches) {
      expect(batch.length * Math.max(...batch.map(longerSide))).toBeLessThanOrEqual(60);
    }
  });

  it('take another pair only as long as it fits with all padded to its length', () => {
    const batches = cutBuckets([pair(4, 2), pair(2, 2), pair(2, 3), pair(3, 3)], 9);
    const sizes = batches.map((batch) => batch.map(({ src, tgt }) => [src.length, tgt.length - 1]));
    expect(sizes).toEqual([
      [
        [2, 2],
        [2, 3],
        [3, 3],
      ],
      [[4, 2]],
    ]);
  });

  it('keep the order of pairs of equal lengths', () => {
    const pairs = Array.from({ length: 9 }, () => pair(3, 3));
    const [first, second] = cutBuckets(pairs, 15);
    expect(first!.every((each, index) => each === pairs[index])).toBe(true);
    expect(second!.every((each, index) => each === pairs[5 + index])).toBe(true);
  });

  it('give a pair that is too long a batch of its own, and nothing for nothing', () => {
    const batches = cutBuckets([pair(30, 30), pair(2, 2)], 10);
    expect(batches.map((batch) => batch.map(longerSide))).toEqual([[2], [30]]);
    expect(cutBuckets([], 10)).toEqual([]);
  });
});

describe('the options of suite train', () => {
  it('run both tables without whole epochs by default, buckets first', () => {
    const options = parseOptions(['train']);
    expect(options.tables).toEqual(['buckets', 'padded']);
    expect(options.jobs).toEqual(['timing', 'equality']);
    expect(options.epochs).toBe(1);
    expect(options.peers.slice(0, 3)).toEqual(['tuned-fp32', 'compiled-fp32', 'seed']);
  });

  it('take tables, jobs and epochs', () => {
    const options = parseOptions(['train', '--tables=buckets', '--jobs=epochs', '--epochs=3']);
    expect(options).toMatchObject({ tables: ['buckets'], jobs: ['epochs'], epochs: 3 });
  });

  it.each([
    ['an unknown table', ['--tables', 'rows']],
    ['an unknown job', ['--jobs', 'epoch']],
    ['no epochs', ['--epochs', '0']],
    ['an unknown peer', ['--peers', 'compiled']],
    ['epochs on padded batches', ['--jobs', 'epochs', '--tables', 'padded']],
  ])('refuse %s', (_, args) => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    expect(() => parseOptions(['train', ...args])).toThrow(/error/);
  });

  it('choose the peers of a table', () => {
    const options = parseOptions(['train', '--peers', 'seed,tuned-fp32']);
    expect(participants(options, ['tuned-fp32', 'compiled-fp32'])).toEqual([
      { kind: 'ours', dtype: 'float32' },
      { kind: 'peer', variant: 'tuned-fp32' },
    ]);
    expect(participants(parseOptions(['train', '--peers', 'none']), ['seed'])).toHaveLength(1);
  });
});

describe('the figures', () => {
  const turn = (name: string, seconds: number[], epochSeconds = 1): Turn<BucketResult> => ({
    name,
    kind: name.startsWith('ours') ? 'ours' : 'peer',
    result: {
      seconds,
      tokens: seconds.map(() => 100),
      losses: seconds.map(() => 1),
      peakRss: 1,
      epochs: [
        { seconds: epochSeconds, trainingLoss: 5, validationLoss: 4.25, validationTokens: 9 },
      ],
    },
  });

  it('are the median of all timed steps, and the lowest and highest median of a round', () => {
    const turns = [turn('a', [9, 1, 2, 4]), turn('a', [9, 1, 1, 10])];
    const [timing] = gatherTiming(turns, 1);
    expect(timing).toMatchObject({ step: 1.5, best: 1, tokensPerSecond: 75, range: [50, 100] });
  });

  it('of epochs name the peer that ours is held to, and both validation losses', () => {
    const written: string[] = [];
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      written.push(String(text));
      return true;
    });
    const turns = [turn('ours float32', [1], 50), turn('tuned-fp32', [1], 100)];
    const prepared = { pairCount: 7, targetTokens: 1000 } as PreparedBuckets;
    printEpochs(gatherEpochs(turns), prepared);
    const report = written.join('');
    expect(report).toContain('against tuned-fp32');
    expect(report).toMatch(/ours float32 \| +1 \| +50 \| +20 \| +2\.00x \| +5\.0000 \| +4\.2500 /);
    expect(report).toMatch(/tuned-fp32 +\| +1 \| +100 \| +10 \| +\| +5\.0000 \| +4\.2500 /);
  });
});
