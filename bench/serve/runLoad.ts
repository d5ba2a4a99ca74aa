/** Many callers at the same time. */
import type { LoadResult } from './serveJob.js';

export interface LoadOptions {
  /** Callers at the same time. */
  readonly clients: number;
  /** No new pass over the sentences begins after so long. */
  readonly seconds: number;
}

/**
 * Translates all sentences, each in a call of its own, again and again. Passes follow each other without
 * a pause, and only whole ones count, so that the work is the same as that of a call with all sentences.
 */
export async function runLoad(
  sentences: readonly string[],
  translate: (sentence: string) => Promise<string>,
  { clients, seconds }: LoadOptions,
): Promise<LoadResult> {
  const latencies: number[] = [];
  const outputs: (string | null | undefined)[] = sentences.map(() => undefined);
  const faults: Record<string, number> = {};
  const start = performance.now();
  let begun = 0;
  const client = async (): Promise<void> => {
    for (;;) {
      const index = begun % sentences.length;
      const isNewPass = index === 0 && begun > 0;
      if (isNewPass && performance.now() - start >= seconds * 1000) return;
      begun++;
      const sent = performance.now();
      let output: string | null;
      try {
        output = await translate(sentences[index]!);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        faults[reason] = (faults[reason] ?? 0) + 1;
        output = null;
      }
      latencies.push((performance.now() - sent) / 1000);
      const earlier = outputs[index];
      outputs[index] = earlier === undefined || earlier === output ? output : null;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const took = (performance.now() - start) / 1000;
  return {
    sentencesPerSecond: begun / took,
    latencies,
    outputs: outputs.map((output) => output ?? null),
    faults,
  };
}

/** Seconds of processor time of this process, on all threads, that `work` takes. */
export async function withCpuTime<T>(work: () => Promise<T>): Promise<[T, number]> {
  const before = process.cpuUsage();
  const result = await work();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1e6];
}

/** Calls with the same sentence, one after another. @returns the seconds of each call */
export async function runLone(
  sentence: string,
  translate: (sentence: string) => Promise<string>,
  seconds: number,
): Promise<number[]> {
  const latencies: number[] = [];
  const start = performance.now();
  // The 99th percentile of fewer would be the longest.
  while (performance.now() - start < seconds * 1000 || latencies.length < 100) {
    const sent = performance.now();
    await translate(sentence);
    latencies.push((performance.now() - sent) / 1000);
  }
  return latencies;
}
