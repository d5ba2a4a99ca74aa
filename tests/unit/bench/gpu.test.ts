/** What bench/gpu/run.sh is made of, apart from the GPU. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { cudaDefinitions, expectedFiles } from '../../../bench/gpu/build.js';
import { cutBatches } from '../../../bench/gpu/cutBatches.js';
import { Deadline, leastSeconds, reserve } from '../../../bench/gpu/deadline.js';
import { describeResults } from '../../../bench/gpu/describeResults.js';
import { compareLosses } from '../../../bench/gpu/equality.js';
import { parseGpuOptions, usualLimit } from '../../../bench/gpu/gpuOptions.js';
import { Participant } from '../../../bench/gpu/participant.js';
import {
  exitCode,
  PartFailed,
  PartSkipped,
  runParts,
  type Part,
} from '../../../bench/gpu/parts.js';
import { writeResults } from '../../../bench/gpu/results.js';

describe('the command line', () => {
  const script = ['--repository', '/r', '--tree', '/t', '--python', '/p'];

  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('takes two folders, and leaves the rest at its defaults', () => {
    expect(parseGpuOptions(['carry', '/out', ...script])).toEqual({
      output: '/out',
      rehearse: false,
      limit: usualLimit,
      repository: '/r',
      tree: '/t',
      python: '/p',
    });
  });

  it('takes --rehearse and --limit', () => {
    const options = parseGpuOptions(['carry', '/out', '--rehearse', '--limit', '60', ...script]);
    expect(options).toMatchObject({ rehearse: true, limit: 60 });
  });

  it.each([
    ['no output folder', ['carry']],
    ['a third folder', ['carry', 'out', 'more']],
    ['an unknown flag', ['carry', 'out', '--fast']],
    ['a limit that is no number', ['carry', 'out', '--limit', 'long']],
    ['a limit in which nothing can be done', ['carry', 'out', '--limit', '9']],
  ])('refuses %s', (_, args) => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    expect(() => parseGpuOptions([...args, ...script])).toThrow(/error/);
  });
});

describe('the time of a run', () => {
  it('gives a part its limit while there is time, then what is left, then nothing', () => {
    let now = 100;
    const deadline = new Deadline(60, () => now);
    expect(deadline.allow(20)).toBe(20);
    now += 60 - reserve - 10;
    expect(deadline.allow(20)).toBe(10);
    now += 10 - leastSeconds + 0.1;
    expect(deadline.allow(20)).toBeNull();
    now += 1000;
    expect(deadline.remaining()).toBe(0);
  });
});

describe('the parts of a run', () => {
  const part = (name: string, run: Part['run'], more: Partial<Part> = {}): Part => ({
    name,
    limit: 10,
    run,
    ...more,
  });
  const passes = part('passes', async () => 1);
  const run = (parts: Part[], limit = 100) =>
    runParts(parts, new Deadline(limit, () => 0), async () => undefined);

  it('go on after one that failed, and keep what it had found', async () => {
    const results = await run([
      part('fails', async () => {
        throw new PartFailed('2 of 3 cases', { cases: 3 });
      }),
      passes,
    ]);
    expect(results).toMatchObject([
      { name: 'fails', status: 'failed', reason: '2 of 3 cases', found: { cases: 3 } },
      { name: 'passes', status: 'passed', found: 1 },
    ]);
    expect(exitCode(results)).toBe(1);
  });

  it('are skipped when one that they need did not pass', async () => {
    const fails = part('build', async () => Promise.reject(new Error('no compiler')));
    const results = await run([fails, part('parity', async () => 1, { needs: ['build'] })]);
    expect(results[1]).toMatchObject({ status: 'skipped', reason: 'build did not pass' });
  });

  it('that have no reason to run here are no failure', async () => {
    const results = await run([
      passes,
      part('GPU', async () => {
        throw new PartSkipped('no GPU');
      }),
    ]);
    expect(results[1]).toMatchObject({ status: 'skipped', reason: 'no GPU' });
    expect(exitCode(results)).toBe(0);
  });

  it('for which no time is left are a failure', async () => {
    const results = await run([passes], reserve + 1);
    expect(results).toMatchObject([{ status: 'skipped', reason: 'no time was left' }]);
    expect(exitCode(results)).toBe(1);
  });

  it('are told of one after the other', async () => {
    const told: number[] = [];
    await runParts(
      [passes, passes],
      new Deadline(100),
      async ({ length }) => void told.push(length),
    );
    expect(told).toEqual([1, 2]);
  });
});

describe('the build', () => {
  it('makes the kernels for the GPU that is there', () => {
    const gpu = { name: 'GPU', capability: '10.0', memoryBytes: 1, driver: null };
    const definitions = cudaDefinitions({ nvcc: '/cuda/bin/nvcc', gpu });
    expect(definitions).toContain('-DTORCHFORMER_CUDA_ARCHITECTURES=100');
    expect(definitions).toContain('-DCMAKE_CUDA_COMPILER=/cuda/bin/nvcc');
  });

  it('leaves them out without nvcc', () => {
    expect(cudaDefinitions({ nvcc: null, gpu: null })).toEqual(['-DTORCHFORMER_CUDA=OFF']);
    expect(expectedFiles({ nvcc: null })).not.toContain('libtorchformer_cuda.so');
    expect(expectedFiles({ nvcc: '/cuda/bin/nvcc' })).toContain('libtorchformer_cuda.so');
  });
});

describe('losses', () => {
  const seed = [2, 1];

  it('of ours are held to those of the seed', () => {
    const near = { seed, 'ours float32': [2, 1.00001], 'ours bfloat16': [2.001, 1] };
    expect(compareLosses(near).faults).toEqual([]);
    const far = compareLosses({ ...near, 'ours float32': [2, 1.0001] });
    expect(far.faults).toEqual([
      'losses of ours float32 are 1.0e-4 from those of seed, not 0.00002',
    ]);
  });

  it('that are not finite or not there are faults', () => {
    const { faults } = compareLosses({ seed, 'ours float32': [2, NaN] });
    expect(faults).toHaveLength(2);
    expect(compareLosses({ 'ours float32': [1] }).faults).toHaveLength(1);
  });

  it('of peers are compared and not held to anything', () => {
    const exact = { seed, 'ours float32': seed, 'ours bfloat16': seed };
    const { differences, faults } = compareLosses({ ...exact, tuned: [3, 1] });
    expect(differences).toMatchObject({ tuned: 0.5 });
    expect(faults).toEqual([]);
  });
});

describe('batches', () => {
  const pair = (length: number) => ({
    src: new Array<number>(length).fill(1),
    tgt: new Array<number>(length + 1).fill(1),
  });

  it('of pairs are cut in the order of the corpus', () => {
    const pairs = [1, 2, 3, 4, 5].map(pair);
    expect(cutBatches(pairs, { pairs: 2 }, 2)).toEqual([pairs.slice(0, 2), pairs.slice(2, 4)]);
  });

  it('of tokens have no more with their padding, and pairs of like length', () => {
    const pairs = Array.from({ length: 60 }, (_, index) => pair(1 + ((index * 7) % 10)));
    const batches = cutBatches(pairs, { tokens: 40 }, 5);
    for (const batch of batches) {
      const lengths = batch.map(({ src }) => src.length);
      expect(Math.max(...lengths) * batch.length).toBeLessThanOrEqual(40);
      expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(3);
    }
  });

  it('that the corpus does not make are an error with both numbers', () => {
    expect(() => cutBatches([pair(1)], { pairs: 1 }, 2)).toThrow('make 1 batches, 2 are needed');
  });
});

describe('a participant', () => {
  const participant = (program: string) =>
    new Participant('peer', process.execPath, ['-e', program]);

  it('answers every request with a line', async () => {
    const program = `
      console.log('{}');
      require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
        const { count } = JSON.parse(line);
        console.log(JSON.stringify({ seconds: new Array(count).fill(1) }));
      });`;
    const peer = participant(program);
    await peer.ready(30);
    expect(await peer.steps({ first: 0, count: 2 }, 30)).toEqual({ seconds: [1, 1] });
    expect(await peer.steps({ first: 0, count: 1 }, 30)).toEqual({ seconds: [1] });
    peer.end();
  });

  it('that ends is told of with its error', async () => {
    const peer = participant(`throw new RangeError('no such size')`);
    await expect(peer.ready(30)).rejects.toThrow('RangeError: no such size');
    await expect(peer.steps({ first: 0, count: 1 }, 30)).rejects.toThrow('it ended');
  });

  it('that takes too long is told of', async () => {
    const peer = participant('setTimeout(() => {}, 60_000)');
    await expect(peer.ready(0.1)).rejects.toThrow('no answer within 0 s');
    peer.end();
  });

  it('that cannot be started is told of', async () => {
    const peer = new Participant('peer', '/nowhere/python', []);
    await expect(peer.ready(30)).rejects.toThrow('ENOENT');
  });
});

describe('the results', () => {
  const timing = {
    best: 0.02,
    peakRss: 1e9,
    loss: 5,
    torch: null,
    capability: null,
    seconds: [0.02],
  };
  const results = {
    rehearsal: false,
    seconds: 200.4,
    parts: [
      {
        name: 'parity of ops',
        status: 'failed' as const,
        seconds: 12,
        reason: '1 of 2 cases failed',
        found: {
          cases: 2,
          failed: 1,
          records: [
            { op: 'linear', options: 'no bias', dtype: 'float32', passed: true, error: 1e-7 },
            { op: 'dropout', options: 'p 0', dtype: 'float64', passed: false, fault: 'no kernel' },
          ],
        },
      },
      {
        name: 'train seed',
        status: 'passed' as const,
        seconds: 90,
        found: {
          size: 'seed',
          about: 'batches of 50 pairs',
          model: { vocabSize: 100, N: 1, dModel: 8, dFf: 8, h: 1 },
          parameters: 2e6,
          rounds: 3,
          compileSeconds: 40,
          failures: {},
          equality: { losses: {}, differences: { 'ours float32': 1e-6 }, faults: [] },
          timing: [
            {
              ...timing,
              name: 'ours float32',
              kind: 'ours',
              step: 0.02,
              tokensPerSecond: 9,
              peakDevice: 4e9,
            },
            {
              ...timing,
              name: 'seed',
              kind: 'peer',
              step: 0.1,
              tokensPerSecond: 2,
              peakDevice: null,
            },
          ],
        },
      },
    ],
  };

  it('tell what failed and why, and how much faster ours is', () => {
    const text = describeResults(results);
    expect(text).toContain('200 s in all');
    expect(text).toContain('- dropout float64: p 0: no kernel');
    expect(text).toMatch(/\| ours float32 +\| +20\.0 ms \|.*4\.00 GB \|/);
    expect(text).toMatch(/\| seed +\| +100 ms \|.*\| +5\.00x \|/);
    expect(text).not.toContain('undefined');
  });

  it('of a rehearsal say that they are none', () => {
    expect(describeResults({ ...results, rehearsal: true })).toMatch(/^Rehearsal .* no figure/);
  });

  it('are written as JSON and as text', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'torchformer-results-'));
    try {
      await writeResults(folder, results);
      const json = await readFile(join(folder, 'results.json'), 'utf8');
      expect(JSON.parse(json)).toEqual(results);
      expect(await readFile(join(folder, 'results.txt'), 'utf8')).toContain('torchformer on a GPU');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
