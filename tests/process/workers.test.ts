import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { ones } from 'torchformer';
import { root } from './support.js';

const script = new URL('./children/worker.mjs', import.meta.url);
const compiled = pathToFileURL(join(root, 'dist/index.js')).href;

function start(task: string, options: object = {}): Worker {
  const workerData = { task, package: compiled, ...options };
  return new Worker(script, { workerData, execArgv: [] });
}

async function firstMessage(worker: Worker): Promise<unknown> {
  const [message] = (await once(worker, 'message')) as [unknown];
  return message;
}

/** The process still computes right: 2 + 2. */
function stillWorks(): boolean {
  return (
    ones([2])
      .add(ones([2]))
      .sum()
      .item() === 4
  );
}

describe('worker threads', () => {
  it('four at once compute the same numbers, and leave nothing behind', async () => {
    const workers = Array.from({ length: 4 }, () => start('forwards'));
    const results = (await Promise.all(workers.map(firstMessage))) as {
      sum: number;
      left: number;
    }[];
    expect(results.map(({ left }) => left)).toEqual([0, 0, 0, 0]);
    expect(Number.isFinite(results[0]?.sum)).toBe(true);
    for (const { sum } of results) expect(sum).toBe(results[0]?.sum);
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect(stillWorks()).toBe(true);
  });

  it('multiply matrices at the same time, with the same bits in every round', async () => {
    const workers = Array.from({ length: 2 }, () => start('products'));
    const results = (await Promise.all(workers.map(firstMessage))) as number[][][];
    const [first] = results[0]!;
    expect(first!.every((sum) => Number.isFinite(sum) && sum !== 0)).toBe(true);
    for (const rounds of results) for (const sums of rounds) expect(sums).toEqual(first);
    await Promise.all(workers.map((worker) => worker.terminate()));
  });

  it('load the addon, end, and load it again, 20 times', async () => {
    const sums = new Set<number>();
    for (let round = 0; round < 20; round++) {
      const worker = start('forwards');
      const ended = once(worker, 'exit');
      sums.add(((await firstMessage(worker)) as { sum: number }).sum);
      expect(await ended).toEqual([0]);
    }
    expect(sums.size).toBe(1);
  });

  it('decode at the same time, and one that is ended meanwhile does not disturb the other', async () => {
    const expected = await firstMessage(start('decode'));
    const other = start('decode', { forever: true });
    const ended = start('decode', { forever: true });
    expect(await Promise.all([other, ended].map(firstMessage))).toEqual([expected, expected]);
    // Both decode on.
    await ended.terminate();
    expect(await firstMessage(start('decode'))).toEqual(expected);
    await other.terminate();
    expect(stillWorks()).toBe(true);
  });

  it.each(['greedy', 'beam'])(
    'ended in the middle of decoding (%s) leave the process alive',
    async (search) => {
      for (let round = 0; round < 4; round++) {
        const worker = start('decode', { forever: true, beam: search === 'beam' ? 4 : 1 });
        await firstMessage(worker);
        await new Promise((resolve) => setTimeout(resolve, 7 * round));
        await worker.terminate();
      }
      expect(stillWorks()).toBe(true);
    },
  );

  it.each(['train', 'longOp'])(
    'ended in the middle of "%s" leave the process alive',
    async (task) => {
      for (let round = 0; round < 3; round++) {
        const worker = start(task);
        await firstMessage(worker);
        await new Promise((resolve) => setTimeout(resolve, 30 * round));
        await worker.terminate();
      }
      expect(stillWorks()).toBe(true);
    },
  );

  it('send no tensors to each other, only their elements', async () => {
    const worker = start('double');
    expect(await firstMessage(worker)).toEqual({
      name: 'DataCloneError',
      message: expect.stringMatching(/memory of a Tensor: send its data\(\)/) as string,
    });
    const x = ones([2]);
    expect(() => worker.postMessage(x)).toThrow(
      expect.objectContaining({ name: 'DataCloneError' }) as Error,
    );
    worker.postMessage({ data: x.data(), shape: x.shape });
    expect(await firstMessage(worker)).toEqual(Float32Array.of(2, 2));
    await worker.terminate();
  });
});
