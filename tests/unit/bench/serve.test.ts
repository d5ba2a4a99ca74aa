/** Suite serve: how callers are run, and the figures of its turns. */
import { describe, expect, it } from 'vitest';
import { metricValue, readingBetween } from '../../../bench/serve/metricValues.js';
import { runLoad } from '../../../bench/serve/runLoad.js';
import { gatherServing, type ServeRound } from '../../../bench/serve/serveFigures.js';
import type { LoadResult, ServerReading } from '../../../bench/serve/serveJob.js';
import { quantile } from '../../../bench/statistics.js';

const upperCase = (text: string): Promise<string> => Promise.resolve(text.toUpperCase());

describe('a quantile', () => {
  it('is the smallest value that so many do not exceed', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(quantile(values, 0.99)).toBe(99);
    expect(quantile(values, 1)).toBe(100);
    expect(quantile([7], 0.99)).toBe(7);
  });

  it('needs values', () => {
    expect(() => quantile([], 0.5)).toThrow('quantile: no values');
  });
});

describe('a load', () => {
  it('translates every sentence in a call of its own, by as many callers as there are clients', async () => {
    const calls: string[] = [];
    let running = 0;
    let most = 0;
    const translate = async (text: string): Promise<string> => {
      calls.push(text);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      return text.toUpperCase();
    };
    const load = await runLoad(['a', 'b', 'c', 'd'], translate, { clients: 3, seconds: 0 });
    expect(calls).toEqual(['a', 'b', 'c', 'd']);
    expect(most).toBe(3);
    expect(load.outputs).toEqual(['A', 'B', 'C', 'D']);
    expect(load.latencies).toHaveLength(4);
    expect(load.faults).toEqual({});
  });

  it('makes whole passes only', async () => {
    const load = await runLoad(['a', 'b', 'c'], upperCase, { clients: 2, seconds: 0.02 });
    expect(load.latencies.length % 3).toBe(0);
    expect(load.latencies.length).toBeGreaterThanOrEqual(3);
  });

  it('has no output for a sentence that was translated in different ways, or not', async () => {
    let calls = 0;
    const translate = (text: string): Promise<string> => {
      if (text === 'b') return Promise.reject(new Error('status 503'));
      return Promise.resolve(text === 'c' ? `${calls++}` : text);
    };
    const load = await runLoad(['a', 'b', 'c'], translate, { clients: 1, seconds: 0.1 });
    expect(load.outputs).toEqual(['a', null, null]);
    expect(load.faults).toEqual({ 'status 503': load.latencies.length / 3 });
  });
});

describe('a reading of /metrics', () => {
  const text = (cpu: number) =>
    [
      '# HELP process_cpu_seconds_total User and system time.',
      `process_cpu_seconds_total ${cpu}`,
      'torchformer_event_loop_delay_seconds_p99 0.004',
      'torchformer_event_loop_delay_seconds_max 0.015',
    ].join('\n');

  it('has the delays since the last one, and the processor time between them', () => {
    expect(readingBetween(text(2), text(5))).toEqual({ loopP99: 0.004, loopMax: 0.015, cpu: 3 });
  });

  it('fails for a metric that is not there', () => {
    expect(() => metricValue(text(1), 'process_cpu')).toThrow('/metrics has no process_cpu');
  });
});

describe('the figures', () => {
  const load = (
    sentencesPerSecond: number,
    latencies: number[],
    outputs: (string | null)[] = ['A', 'B'],
  ): LoadResult => ({ sentencesPerSecond, latencies, outputs, faults: {} });
  const reading = (loopP99: number, loopMax: number): ServerReading => ({
    loopP99,
    loopMax,
    cpu: 0.5,
  });
  const round = (
    speed: number,
    outputs?: (string | null)[],
    faults: Record<string, number> = {},
  ): ServeRound => ({
    direct: {
      batch: [0.2, 0.1, 0.3],
      batchCpu: 1.2,
      outputs: ['A', 'B'],
      lone: [0.01, 0.02, 0.03],
      load: load(8, [0.1, 0.3]),
      loadCpu: 0.8,
    },
    served: {
      first: speed,
      lone: [0.02, 0.05],
      load: { ...load(speed, [0.2, 0.4], outputs), faults },
      clientCpu: 0.1,
      server: {
        loading: reading(0.01, 0.02),
        lone: reading(0, 0),
        load: reading(speed, 2 * speed),
      },
      memory: 100 * speed,
    },
  });

  it('compare sentences per second with one call, by the median of the rounds', () => {
    const { batch, calls, served } = gatherServing([round(6), round(9), round(8)]);
    expect(batch.sentencesPerSecond).toBe(10);
    expect(calls.share).toBe(0.8);
    expect(served).toMatchObject({ sentencesPerSecond: 8, range: [6, 9], share: 0.8 });
    expect(served.latencies).toEqual({ median: (0.2 + 0.4) / 2, p99: 0.4, max: 0.4 });
  });

  it('compare lone sentences with the median in process', () => {
    const { lone } = gatherServing([round(6)]);
    expect(lone.direct).toEqual({ median: 0.02, p99: 0.03, max: 0.03, ratio: 0.03 / 0.02 });
    expect(lone.served.ratio).toBe(0.05 / 0.02);
  });

  it('have the delays of the worst round, and processor time per sentence', () => {
    const { loop, first, memory, batch, calls, served, clientCpu } = gatherServing([
      round(6),
      round(9),
    ]);
    expect(loop.load).toEqual({ p99: 9, max: 18 });
    expect([first, memory]).toEqual([9, 900]);
    // Three calls with two sentences in each round, and two calls with one.
    expect([batch.cpu, calls.cpu, served.cpu]).toEqual([2.4 / 12, 1.6 / 4, 1 / 4]);
    expect(clientCpu).toBe(0.2 / 4);
  });

  it('count outputs that are the same in every round', () => {
    const { served, batch, faults } = gatherServing([
      round(6, ['A', null], { 'status 503': 1 }),
      round(9),
    ]);
    expect(served.equal).toBe(1);
    expect(batch.equal).toBe(2);
    expect(faults).toEqual({ 'status 503': 1 });
  });
});
